import { joinedFloats } from '../base/joined-arrays.js';
import { messageOfFailure, type RequestFailure } from './request-failure.js';
import {
  RESPONSE_BEAM,
  RESPONSE_END,
  RESPONSE_ERROR,
  RESPONSE_FINAL,
  RESPONSE_FIRST,
  RESPONSE_INVALID,
  RESPONSE_LOG_PROBS,
  RESPONSE_PROGRESS,
  RESPONSE_STREAMING,
  type ResponseBatch,
  type ReturnedTensors,
} from './response-batch.js';
import type { TokenPiece } from './token-request.js';
import type { NamedTensor, SendResponseCallback } from './types.js';
import { beamOutputs, countBeams } from './unpack-beams.js';

/** One response as sendResponse takes it. */
export interface Response {
  requestId: bigint;
  outputs: NamedTensor[];
  final: boolean;
  error: string;
  /** The error as data, where there is an error. */
  failure?: RequestFailure;
}

/** Makes the last response of a request that has no answer, where no batch brings it. */
export function failedResponse(requestId: bigint, failure: RequestFailure): Response {
  return { requestId, outputs: [], final: true, error: messageOfFailure(failure), failure };
}

/** Calls a sendResponse; without an error, `failure` is left out. */
export function sendTo<T>(
  send: (...told: Parameters<SendResponseCallback>) => T,
  { requestId, outputs, final, error, failure }: Response,
): T {
  return failure === undefined
    ? send(requestId, outputs, final, error)
    : send(requestId, outputs, final, error, failure);
}

/**
 * The responses of a batch in order. `maxSeqLen` is the length of output_ids where a request does not stream.
 *
 * Tensors of a response without error (beamWidth is 1, n the generated tokens in this response, p those of the prompt):
 *
 *   output_ids         [1, 1, n] new tokens when streaming, else [1, 1, maxSeqLen]: prompt, output, then pad_id
 *   sequence_length    [1, 1] prompt and output so far
 *   context_logits     [1, p, vocab] f32 with the first response, where return_context_logits was asked for; row t is
 *                      what the network gave after prompt token t. Else the dummy [1, 1, 1]
 *   generation_logits  [1, 1, n, vocab] f32 where return_generation_logits was asked for; row t is what token t of this
 *                      response was drawn from. Else the dummy [1, 1, 1, 1]
 *   finish_reasons     [1, 1] see FinishCode
 *   output_log_probs   [1, 1, n] of the generated tokens in this response; where log-probs were asked for
 *   cum_log_probs      [1, 1] sum over all generated tokens; where log-probs were asked for
 *   top_token_ids      [1, 1, n, k] and
 *   top_log_probs      [1, 1, n, k] most probable first; where top_log_probs was asked for
 *   context_log_probs  [1, p - 1] with the first response, where return_context_log_probs was asked for; entry t is of
 *                      prompt token t + 1 given those up to t. With top_context_log_probs also
 *   context_top_token_ids, context_top_log_probs  [1, p - 1, k]
 *   cached_tokens      [1, 1] prompt tokens that were found in the cache, with the first response
 *   random_seed        [1] u64, with the final response
 *   request_times_ms   [1, 3] f32, with the final response: from arrival to first scheduled, to the first token, to the
 *                      last token; -1 for what never happened
 *   num_iterations     [1, 1] i32, with the final response: iterations in which the request ran
 *   reused_blocks, missed_blocks  [1, 1] i32, with the final response: full blocks of its prompt that the cache had and
 *                      had not; after a pause it looks again
 *   num_pauses         [1, 1] i32, with the final response
 *
 * A request with several sequences (num_return_sequences) answers for each by itself, in responses that also have
 *
 *   sequence_index     [1, 1] i32, from 0; where best_of chose among more, 0 is the best
 *
 * What comes with the final response comes with the last response of each sequence then; the one that ends last is final.
 *
 * Beam search (beam_width b > 1) has one response for all beams, the best first: while it streams one in each iteration
 * with whole beams, which may be other ones than before. m is the most tokens that one of them has generated:
 *
 *   output_ids         [1, b, maxSeqLen] prompt, output, then pad_id
 *   sequence_length    [1, b]
 *   finish_reasons     [1, b]
 *   output_log_probs   [1, b, m] with 0 after the end of a beam
 *   cum_log_probs      [1, b] that of the end_id which ended a beam included: what beams are compared by
 *   top_token_ids, top_log_probs  [1, b, m, k] with -1 and 0 after the end of a beam
 *   generation_logits  [1, b, m, vocab] with 0 after the end of a beam
 *
 * Logits are raw: before penalties, bans and temperature. The first response of a request that does not stream is its
 * final one. With streaming every response has the logits of its own tokens, so that all of them together have each row
 * once; the final one may have n = 0. A token that ended the request without being output (end_id) has no row. A request
 * that is stopped before its context is complete returns the rows that it has: p is then less than the prompt.
 *
 * Where return_context_progress was asked for, responses in front of the first one report how far the prompt
 * is, one after each iteration that computed a part of it. They have none of these tensors but only
 *
 *   context_progress   [1, 3] i32, prompt tokens done, those of them that were found in the cache, and milliseconds since
 *                      the request first ran
 *
 * A response with an error has none of them. Where the request itself is at fault, so that nothing of it ran, it has
 *
 *   invalid_request    [1] bool, 1
 */
export function* unpackResponses(batch: ResponseBatch, maxSeqLen: number): Generator<Response> {
  const responses = new ResponseReader(batch, maxSeqLen);
  while (responses.next()) yield responses.unpack();
}

/** Flags of a response that is more than new tokens. */
const MORE =
  RESPONSE_ERROR | RESPONSE_BEAM | RESPONSE_FIRST | RESPONSE_END | RESPONSE_FINAL | RESPONSE_PROGRESS;

/**
 * Goes through the responses of a batch, each of which can be had in one of two forms: as tensors, or, where it is nothing but
 * new tokens of a sequence that streams (as all but the first and the last are), as just these.
 *
 *   while (responses.next()) ... responses.unpack() or, where isOnlyTokens, responses.newTokens()
 */
export class ResponseReader {
  readonly #batch: ResponseBatch;
  readonly #maxSeqLen: number;
  /** Returned tensors by the index of their response; null: there are none, as in nearly every batch. */
  readonly #returned: ReadonlyMap<number, ReturnedTensors> | null;
  #index = -1;
  #nextIndex = 0;
  /** Index of the response's first entry in topTokens and topLogProbs. */
  #topStart = 0;
  #nextTopStart = 0;

  constructor(batch: ResponseBatch, maxSeqLen: number) {
    this.#batch = batch;
    this.#maxSeqLen = maxSeqLen;
    const { returned } = batch;
    this.#returned = returned.length === 0 ? null : new Map(returned.map((one) => [one.index, one]));
  }

  /** Goes to the next response, beams counting as one; false: there is none. */
  next(): boolean {
    const batch = this.#batch;
    this.#index = this.#nextIndex;
    this.#topStart = this.#nextTopStart;
    const i = this.#index;
    if (i >= batch.count) return false;
    const flags = batch.flags[i]!;
    const width = (flags & RESPONSE_BEAM) === 0 ? 1 : countBeams(batch, i);
    this.#nextIndex = i + width;
    if ((flags & RESPONSE_LOG_PROBS) !== 0) this.#nextTopStart += topEntries(batch, i, width);
    return true;
  }

  get requestId(): bigint {
    return this.#batch.requestIds[this.#index]!;
  }

  get isFinal(): boolean {
    return (this.#batch.flags[this.#index]! & RESPONSE_FINAL) !== 0;
  }

  /** Index of the sequence among those of the request; 0 where it has one. */
  get sequenceIndex(): number {
    return Math.max(0, this.#batch.sequenceIndexes[this.#index]!);
  }

  get isOnlyTokens(): boolean {
    const i = this.#index;
    const flags = this.#batch.flags[i]!;
    if ((flags & MORE) !== 0 || (flags & RESPONSE_STREAMING) === 0) return false;
    return this.#returned === null || !this.#returned.has(i);
  }

  newTokens(): TokenPiece {
    const batch = this.#batch;
    const i = this.#index;
    const piece: TokenPiece = {
      tokens: batch.tokens.slice(batch.tokenStart[i]!, batch.tokenStart[i + 1]!),
      finishReason: null,
    };
    if ((batch.flags[i]! & RESPONSE_LOG_PROBS) === 0) return piece;
    piece.logProbs = batch.logProbs.slice(batch.logProbStart[i]!, batch.logProbStart[i + 1]!);
    if (batch.topWidths[i]! === 0) return piece;
    piece.topTokens = batch.topTokens.slice(this.#topStart, this.#nextTopStart);
    piece.topLogProbs = batch.topLogProbs.slice(this.#topStart, this.#nextTopStart);
    return piece;
  }

  unpack(): Response {
    const i = this.#index;
    const batch = this.#batch;
    const { requestId, isFinal: final } = this;
    const flags = batch.flags[i]!;
    if ((flags & RESPONSE_ERROR) !== 0) {
      const isInvalid = (flags & RESPONSE_INVALID) !== 0;
      const outputs = isInvalid ? [{ name: 'invalid_request', shape: [1], data: Uint8Array.of(1) }] : [];
      const failed = batch.errors.find(({ index }) => index === i)!;
      const why: RequestFailure = { kind: failed.kind, field: failed.field, text: failed.text };
      return { requestId, outputs, final, error: messageOfFailure(why), failure: why };
    }
    if ((flags & RESPONSE_PROGRESS) !== 0) {
      return { requestId, outputs: [contextProgress(batch, i)], final, error: '' };
    }
    const ofRows = this.#returned?.get(i);
    const outputs =
      (flags & RESPONSE_BEAM) !== 0 ? this.#beamOutputs(ofRows) : this.#sequenceOutputs(flags, ofRows);
    pushOnce(outputs, batch, i, ofRows);
    return { requestId, outputs, final, error: '' };
  }

  #beamOutputs(returned: ReturnedTensors | undefined): NamedTensor[] {
    const beams = { first: this.#index, width: this.#nextIndex - this.#index, topStart: this.#topStart };
    const outputs = beamOutputs(this.#batch, beams, this.#maxSeqLen);
    outputs.push(contextLogits(returned), generationLogits(returned, beams.width));
    return outputs;
  }

  #sequenceOutputs(flags: number, returned: ReturnedTensors | undefined): NamedTensor[] {
    const batch = this.#batch;
    const i = this.#index;
    const outputs = coreOutputs(batch, i, this.#maxSeqLen, returned);
    if ((flags & RESPONSE_LOG_PROBS) !== 0) pushLogProbs(outputs, batch, i, this.#topStart);
    if (batch.sequenceIndexes[i]! >= 0) {
      outputs.push({ name: 'sequence_index', shape: [1, 1], data: batch.sequenceIndexes.slice(i, i + 1) });
    }
    return outputs;
  }
}

function contextProgress({ sequenceLengths, cachedTokens, timesMs }: ResponseBatch, i: number): NamedTensor {
  const data = Int32Array.of(sequenceLengths[i]!, cachedTokens[i]!, timesMs[3 * i]!);
  return { name: 'context_progress', shape: [1, 3], data };
}

/** Adds the outputs that a request gets once, with its first or its last response. */
function pushOnce(
  outputs: NamedTensor[],
  batch: ResponseBatch,
  i: number,
  returned: ReturnedTensors | undefined,
): void {
  const flags = batch.flags[i]!;
  if (returned) pushContextLogProbs(outputs, returned);
  if ((flags & RESPONSE_FIRST) !== 0) {
    const data = batch.cachedTokens.slice(i, i + 1);
    outputs.push({ name: 'cached_tokens', shape: [1, 1], data });
  }
  if ((flags & RESPONSE_END) !== 0) pushFinal(outputs, batch, i);
}

/** Number of entries of topTokens that belong to the responses [first, first + count). */
function topEntries({ logProbStart, topWidths }: ResponseBatch, first: number, count: number): number {
  return (logProbStart[first + count]! - logProbStart[first]!) * topWidths[first]!;
}

function coreOutputs(
  batch: ResponseBatch,
  i: number,
  maxSeqLen: number,
  returned: ReturnedTensors | undefined,
): NamedTensor[] {
  const tokens = batch.tokens.subarray(batch.tokenStart[i]!, batch.tokenStart[i + 1]!);
  let outputIds: Int32Array;
  if ((batch.flags[i]! & RESPONSE_STREAMING) !== 0) {
    outputIds = tokens.slice();
  } else {
    outputIds = new Int32Array(maxSeqLen).fill(batch.padIds[i]!, tokens.length);
    outputIds.set(tokens);
  }
  return [
    { name: 'output_ids', shape: [1, 1, outputIds.length], data: outputIds },
    { name: 'sequence_length', shape: [1, 1], data: Int32Array.of(batch.sequenceLengths[i]!) },
    contextLogits(returned),
    generationLogits(returned, 1),
    { name: 'finish_reasons', shape: [1, 1], data: Int32Array.of(batch.finishReasons[i]!) },
  ];
}

function contextLogits(returned: ReturnedTensors | undefined): NamedTensor {
  const name = 'context_logits';
  const data = returned?.context?.logits ?? null;
  if (data === null) return { name, shape: [1, 1, 1], data: new Float32Array(1) };
  const { vocabSize } = returned!;
  return { name, shape: [1, data.length / vocabSize, vocabSize], data };
}

function generationLogits(returned: ReturnedTensors | undefined, width: number): NamedTensor {
  const name = 'generation_logits';
  const rows = returned?.generationLogits ?? null;
  if (rows === null) return { name, shape: [1, 1, 1, 1], data: new Float32Array(1) };
  const data = joinedFloats(rows);
  const { vocabSize } = returned!;
  return { name, shape: [1, width, data.length / vocabSize / width, vocabSize], data };
}

function pushContextLogProbs(outputs: NamedTensor[], { context }: ReturnedTensors): void {
  const found = context?.logProbs;
  if (!found) return;
  const { logProbs, numTop, topTokens, topLogProbs } = found;
  const n = logProbs.length;
  outputs.push({ name: 'context_log_probs', shape: [1, n], data: logProbs });
  if (numTop === 0) return;
  outputs.push({ name: 'context_top_token_ids', shape: [1, n, numTop], data: topTokens });
  outputs.push({ name: 'context_top_log_probs', shape: [1, n, numTop], data: topLogProbs });
}

function pushFinal(outputs: NamedTensor[], batch: ResponseBatch, i: number): void {
  const times = batch.timesMs.slice(3 * i, 3 * i + 3);
  const [reused, missed, pauses] = batch.reuseAndPauses.subarray(3 * i, 3 * i + 3);
  const count = (name: string, value: number): NamedTensor => ({
    name,
    shape: [1, 1],
    data: Int32Array.of(value),
  });
  outputs.push(
    { name: 'random_seed', shape: [1], data: batch.seeds.slice(i, i + 1) },
    { name: 'request_times_ms', shape: [1, 3], data: times },
    count('num_iterations', batch.numIterations[i]!),
    count('reused_blocks', reused!),
    count('missed_blocks', missed!),
    count('num_pauses', pauses!),
  );
}

function pushLogProbs(outputs: NamedTensor[], batch: ResponseBatch, i: number, topStart: number): void {
  const start = batch.logProbStart[i]!;
  const end = batch.logProbStart[i + 1]!;
  const n = end - start;
  outputs.push({ name: 'output_log_probs', shape: [1, 1, n], data: batch.logProbs.slice(start, end) });
  outputs.push({ name: 'cum_log_probs', shape: [1, 1], data: Float32Array.of(batch.cumLogProbs[i]!) });
  const width = batch.topWidths[i]!;
  if (width === 0) return;
  const topEnd = topStart + n * width;
  const shape = [1, 1, n, width];
  outputs.push({ name: 'top_token_ids', shape, data: batch.topTokens.slice(topStart, topEnd) });
  outputs.push({ name: 'top_log_probs', shape: [...shape], data: batch.topLogProbs.slice(topStart, topEnd) });
}
