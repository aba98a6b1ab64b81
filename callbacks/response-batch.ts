/** The response is the request's last. */
export const RESPONSE_FINAL = 1;
/** Carries the tokens that are new; without it, prompt and output of the whole request. */
export const RESPONSE_STREAMING = 2;
/** Carries a log-prob for each generated token in it. */
export const RESPONSE_LOG_PROBS = 4;
/** Failed: there are no tensors, the text stands in `errors`. */
export const RESPONSE_ERROR = 8;
/** With RESPONSE_ERROR: the request itself is at fault; nothing of it ran. */
export const RESPONSE_INVALID = 16;
/** The request's first response with tensors. */
export const RESPONSE_FIRST = 32;

/**
 * All responses of one iteration in flat arrays, as they cross from the worker to the host's thread: no object per
 * token or request, except for the rare error text.
 *
 *   response         0 (streaming)  1 (streaming)  2 (whole)
 *   tokens           a7             b3 b4          p0 p1 p2 c0 c1
 *   tokenStart       0              1              3              8     [count + 1]
 *   logProbs         (none)         -0.1 -2.0      (none)
 *   logProbStart     0              0              2              2     [count + 1]
 *
 * topTokens and topLogProbs hold topWidth[i] entries for each log-prob of response i, packed in the same order.
 */
export interface ResponseBatch {
  count: number;
  requestIds: BigUint64Array;
  flags: Uint8Array;
  finishReasons: Uint8Array;
  promptLengths: Int32Array;
  /** Prompt and output together, as far as this response goes. */
  sequenceLengths: Int32Array;
  padIds: Int32Array;
  /** Prompt tokens that were found in the cache. */
  cachedTokens: Int32Array;
  seeds: BigUint64Array;
  cumLogProbs: Float64Array;
  /** With a final response, 3 each: milliseconds from arrival to first scheduled, first token, last token; else -1. */
  timesMs: Float32Array;
  /** With a final response: iterations in which the request ran. */
  numIterations: Int32Array;
  topWidths: Int32Array;
  tokenStart: Int32Array;
  tokens: Int32Array;
  logProbStart: Int32Array;
  logProbs: Float32Array;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
  /** Index of the response and its text. */
  errors: [number, string][];
}
