/** What was collected of the prompt's rows. */
export interface ContextReturn {
  /** [rows x vocabSize]; null: not asked for. */
  logits: Float32Array | null;
  logProbs: ContextLogProbs | null;
}

/** Entry i is of prompt token i + 1, given those before it. */
export interface ContextLogProbs {
  logProbs: Float32Array;
  /** Most probable tokens at each entry. */
  numTop: number;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
}

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
/** The last of its sequence. */
export const RESPONSE_END = 64;
/**
 * One of the beams of a response: entries of beams 0, 1, ... stand one behind the other and are one response. What is told
 * of a request once stands with the first of them.
 */
export const RESPONSE_BEAM = 128;

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
  /** Which of the request's sequences, in the order of the answers; -1 where the request has one. */
  sequenceIndexes: Int32Array;
  promptLengths: Int32Array;
  /** Prompt and output together, as far as this response goes. */
  sequenceLengths: Int32Array;
  padIds: Int32Array;
  /** Prompt tokens that were found in the cache. */
  cachedTokens: Int32Array;
  seeds: BigUint64Array;
  cumLogProbs: Float64Array;
  /** With the last response of a sequence, 3 each: milliseconds from arrival to first scheduled, first token, last token; else -1. */
  timesMs: Float32Array;
  /** With the last response of a sequence: iterations in which the request ran. */
  numIterations: Int32Array;
  /** With the last response of a sequence, 3 each: full blocks of the prompt found in the cache, those missed, and pauses. */
  reuseAndPauses: Int32Array;
  topWidths: Int32Array;
  tokenStart: Int32Array;
  tokens: Int32Array;
  logProbStart: Int32Array;
  logProbs: Float32Array;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
  /** Index of the response and its text. */
  errors: [number, string][];
  /** Of the responses whose requests ask for rows of logits; the arrays are the receiver's to keep. */
  returned: ReturnedTensors[];
}

/** Rows of logits and what was made of them, for one response. */
export interface ReturnedTensors {
  /** Which response. */
  index: number;
  vocabSize: number;
  /** With the request's first response; null: with none or another one. */
  context: ContextReturn | null;
  /** Logits of the tokens in this response, [rows x vocabSize] in one or more arrays; null: not asked for. */
  generationLogits: Float32Array[] | null;
}

/** The buffers of a batch that was made by ResponseWriter.snapshot: to be handed over, not copied. */
export function transferables({ requestIds, returned }: ResponseBatch): ArrayBuffer[] {
  // All the flat arrays are views of one buffer.
  const buffers = new Set([requestIds.buffer]);
  for (const { context, generationLogits } of returned) {
    if (context?.logits) buffers.add(context.logits.buffer);
    const logProbs = context?.logProbs;
    if (logProbs) for (const array of logProbArrays(logProbs)) buffers.add(array.buffer);
    for (const rows of generationLogits ?? []) buffers.add(rows.buffer);
  }
  return [...buffers] as ArrayBuffer[];
}

function logProbArrays({ logProbs, topTokens, topLogProbs }: ContextLogProbs) {
  return [logProbs, topTokens, topLogProbs];
}
