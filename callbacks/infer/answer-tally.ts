/** A request of an engine, as far as a tally describes it. */
export interface TalliedRequest {
  /** Name of the model that answers. */
  model: string;
  promptTokens: number;
  /** Its prompt was counted with another answer to the same prompt. */
  sharesPrompt?: boolean | undefined;
}

/** Follows one answer while it is made. */
export interface TalliedAnswer {
  /** Called at most once, with the number of prompt tokens found in the cache. */
  onCachedTokens(count: number): void;
  /** Called with the number of tokens of each piece that holds any. */
  onTokens(count: number): void;
  /**
   * Called with the number of tokens that were generated when the client left, and that were reported to no
   * one.
   */
  onForgotten(count: number): void;
  /** Called once. @param reason a finish reason, or 'abort' or 'error' */
  onEnd(reason: string): void;
}

/** Adds up the answers of one exchange with a client: numbers, and nothing of what they say. */
export interface AnswerTally {
  begin(request: TalliedRequest): TalliedAnswer;
}

/** Most of what a request can take, before it is begun. */
export interface AnswerCost {
  /** Tokens of all its prompts. */
  promptTokens: number;
  /** Most tokens of all answers together. */
  outputTokens: number;
  /** Answers that its tally will be notified of. */
  answers: number;
}

/** Leave for a request to be answered, which was counted with its cost. */
export interface Admission {
  /** Follows its answers, all of them: what they did not take is given back when the last one has ended. */
  readonly tally: AnswerTally;
  /** It was not begun after all, and costs nothing. Without effect once its answers have ended. */
  cancel(): void;
}

/**
 * Asks whether a request may be answered. Rejects where its caller has no more. @param tally also follows the
 * answers
 */
export type Admit = (cost: AnswerCost, tally: AnswerTally | undefined) => Promise<Admission>;
