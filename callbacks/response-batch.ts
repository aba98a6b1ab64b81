import { type ColumnArrays, ColumnTable, column, startColumn } from '../base/columns.js';
import type { RequestFailure } from './request-failure.js';

/** Values of the output tensor finish_reasons [1, beamWidth]. */
export const FINISH_NOT_FINISHED = 0;
/** end_id was drawn; it is not part of the output. */
export const FINISH_END_ID = 1;
/** The output ends with one of the stop words. */
export const FINISH_STOP_WORDS = 2;
export const FINISH_LENGTH = 3;
export const FINISH_TIMED_OUT = 4;
export const FINISH_CANCELLED = 5;

export type FinishCode = 0 | 1 | 2 | 3 | 4 | 5;

/** Logits and log-probs of the prompt's rows. */
export interface ContextReturn {
  /** Logits, [rows x vocabSize]; null: not asked for. */
  logits: Float32Array | null;
  logProbs: ContextLogProbs | null;
}

/** Log-probs of the prompt: entry i is of prompt token i + 1, given those before it. */
export interface ContextLogProbs {
  logProbs: Float32Array;
  /** Number of most probable tokens at each entry. */
  numTop: number;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
}

/** Flag: the response is the request's last. */
export const RESPONSE_FINAL = 1;
/** Flag: the response carries new tokens only; without it, prompt and output of the whole request. */
export const RESPONSE_STREAMING = 2;
/** Flag: the response carries a log-prob for each generated token in it. */
export const RESPONSE_LOG_PROBS = 4;
/** Flag: the request failed. The response has no tensors; the reason is in `errors`. */
export const RESPONSE_ERROR = 8;
/** Flag, with RESPONSE_ERROR: the request itself is at fault; nothing of it ran. */
export const RESPONSE_INVALID = 16;
/** Flag: the request's first response with tensors. */
export const RESPONSE_FIRST = 32;
/** Flag: the last response of its sequence. */
export const RESPONSE_END = 64;
/**
 * Flag: one of the beams of a response. Entries of beams 0, 1, ... are consecutive and form one response; values given
 * once per request are in the first of them.
 */
export const RESPONSE_BEAM = 128;
/**
 * Flag, alone: the response reports how far the request's prompt is and has no tokens. Its sequence length is
 * the number of prompt tokens done, those of the cache included; the first of its times is that since the
 * request first ran.
 */
export const RESPONSE_PROGRESS = 256;

/** The flat arrays of a batch of responses. */
export const RESPONSE_COLUMNS = {
  requestIds: column('u64', 'response'),
  seeds: column('u64', 'response'),
  cumLogProbs: column('f64', 'response'),
  /** Index of the sequence among those of the request, in the order of the answers; -1 where the request has one. */
  sequenceIndexes: column('i32', 'response'),
  promptLengths: column('i32', 'response'),
  /** Length of prompt and output together, up to and including this response. */
  sequenceLengths: column('i32', 'response'),
  padIds: column('i32', 'response'),
  /** Number of prompt tokens found in the cache. */
  cachedTokens: column('i32', 'response'),
  /**
   * With the last response of a sequence, 3 times in milliseconds: from arrival to first scheduled, first token, last
   * token; else -1.
   */
  timesMs: column('f32', 'response', 3),
  /** With the last response of a sequence: iterations in which the request ran. */
  numIterations: column('i32', 'response'),
  /** With the last response of a sequence, 3 each: full blocks of the prompt found in the cache, those missed, and pauses. */
  reuseAndPauses: column('i32', 'response', 3),
  /** Number of most probable tokens for each log-prob. */
  topWidths: column('i32', 'response'),
  tokenStart: startColumn('response'),
  tokens: column('i32', 'token'),
  logProbStart: startColumn('response'),
  logProbs: column('f32', 'logProb'),
  topTokens: column('i32', 'topEntry'),
  topLogProbs: column('f32', 'topEntry'),
  /** Sum of the RESPONSE_ flags that hold. */
  flags: column('u16', 'response'),
  finishReasons: column('u8', 'response'),
} as const;

export const RESPONSE_TABLE = new ColumnTable(RESPONSE_COLUMNS);

/**
 * All responses of one iteration in flat arrays, as they cross from the worker to the host's thread: no object per
 * token or request, except for the rare failure.
 *
 *   response         0 (streaming)  1 (streaming)  2 (whole)
 *   tokens           a7             b3 b4          p0 p1 p2 c0 c1
 *   tokenStart       0              1              3              8     [count + 1]
 *   logProbs         (none)         -0.1 -2.0      (none)
 *   logProbStart     0              0              2              2     [count + 1]
 *
 * topTokens and topLogProbs hold topWidth[i] entries for each log-prob of response i, packed in the same order.
 */
export interface ResponseBatch extends ColumnArrays<typeof RESPONSE_COLUMNS> {
  count: number;
  /** Failures, for the responses that have one. */
  errors: FailedResponse[];
  /** Returned logits, for the responses that carry any; the arrays are the receiver's to keep. */
  returned: ReturnedTensors[];
}

/** Why a response failed. */
export interface FailedResponse extends RequestFailure {
  /** Index of the response in the batch. */
  index: number;
}

/** Logits of one response, and values computed from logits. */
export interface ReturnedTensors {
  /** Index of the response in the batch. */
  index: number;
  vocabSize: number;
  /** Values of the prompt, with the request's first response; null: none were asked for, or it is a later response. */
  context: ContextReturn | null;
  /** Logits of the tokens in this response, [rows x vocabSize] in one or more arrays, those of beams one beam after the other; null: not asked for. */
  generationLogits: Float32Array[] | null;
}

/** The buffers of a batch made by ResponseWriter.snapshot, which can be transferred instead of copied. */
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
