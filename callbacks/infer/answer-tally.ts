/** A request of an engine, as far as a tally tells of it. */
export interface TalliedRequest {
  /** Name of the model that answers. */
  model: string;
  promptTokens: number;
  /** Its prompt was counted with another answer to the same prompt. */
  sharesPrompt?: boolean | undefined;
}

/** Hears of one answer while it is made. */
export interface TalliedAnswer {
  /** Called at most once, with the number of prompt tokens found in the cache. */
  onCachedTokens(count: number): void;
  /** Called with the number of tokens of each piece that holds any. */
  onTokens(count: number): void;
  /** Called with the number of tokens that were generated when the client left, and that nobody was told. */
  onForgotten(count: number): void;
  /** Called once. @param reason a finish reason, or 'abort' or 'error' */
  onEnd(reason: string): void;
}

/** Adds up the answers of one exchange with a client: numbers, and nothing of what they say. */
export interface AnswerTally {
  begin(request: TalliedRequest): TalliedAnswer;
}
