/** One turn of a conversation: what the user says and how long the answer is to be. */
export interface Turn {
  /** The user's text; with the raw backend it may be the whole body. */
  prompt: string;
  /** Earlier messages that the data itself has, for chats that do not begin empty. */
  history?: readonly Message[];
  /** Most tokens of the answer; null leaves it to the server. */
  maxTokens: number | null;
  /** Tokens that the prompt is meant to have, where the data says so. */
  promptTokens?: number;
  /** Fields of the body that go over all others. */
  fields?: Readonly<Record<string, unknown>>;
  /** Seconds after the end of the answer before. */
  thinkSeconds?: number;
}

export interface Message {
  role: string;
  content: string;
}

/** What is sent at one place of the schedule: one request, or a conversation whose turns wait for one another. */
export interface Sample {
  turns: readonly Turn[];
}

/** Samples by number, each the same at every call: number i depends on the seed and on i alone. */
export interface Dataset {
  /** What the data are and their parameters, for the report. */
  readonly description: Readonly<Record<string, unknown>>;
  /** Distinct samples; infinite where each number gives another. */
  readonly size: number;
  sample(index: number): Sample;
}
