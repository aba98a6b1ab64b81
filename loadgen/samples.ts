/** One turn of a conversation: the user's text, and the length of the answer. */
export interface Turn {
  /** The user's text; with the raw backend it may be the whole body. */
  prompt: string;
  /** Earlier messages in the data itself, for chats that do not begin empty. */
  history?: readonly Message[];
  /** Most tokens of the answer; null leaves it to the server. */
  maxTokens: number | null;
  /** Intended number of prompt tokens, where the data gives it. */
  promptTokens?: number;
  /** Fields of the body that replace all others. */
  fields?: Readonly<Record<string, unknown>>;
  /** Seconds to wait after the end of the previous answer. */
  thinkSeconds?: number;
}

export interface Message {
  role: string;
  content: string;
}

/** One entry of a dataset: a request, or a conversation whose turns wait for one another. */
export interface Sample {
  turns: readonly Turn[];
}

/** Samples by number, each the same at every call: sample i depends only on the seed and on i. */
export interface Dataset {
  /** Kind and parameters of the data, for the report. */
  readonly description: Readonly<Record<string, unknown>>;
  /** Number of distinct samples; Infinity where each number gives another. */
  readonly size: number;
  sample(index: number): Sample;
}
