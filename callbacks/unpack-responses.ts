import {
  RESPONSE_ERROR,
  RESPONSE_FINAL,
  RESPONSE_FIRST,
  RESPONSE_INVALID,
  RESPONSE_LOG_PROBS,
  RESPONSE_STREAMING,
  type ResponseBatch,
} from './response-batch.js';
import type { NamedTensor } from './types.js';

/** One response as sendResponse takes it. */
export interface Response {
  requestId: bigint;
  outputs: NamedTensor[];
  final: boolean;
  error: string;
}

/**
 * The responses of a batch in order. `maxSeqLen` is the length of output_ids where a request does not stream.
 *
 * Tensors of a response without error (beamWidth is 1, n the tokens in this response):
 *
 *   output_ids         [1, 1, n] new tokens when streaming, else [1, 1, maxSeqLen]: prompt, output, then pad_id
 *   sequence_length    [1, 1] prompt and output so far
 *   context_logits     [1, 1, 1] dummy
 *   generation_logits  [1, 1, 1, 1] dummy
 *   finish_reasons     [1, 1] see engine/decoding/finish-reason.ts
 *   output_log_probs   [1, 1, n] of the generated tokens in this response; where log-probs were asked for
 *   cum_log_probs      [1, 1] sum over all generated tokens; where log-probs were asked for
 *   top_token_ids      [1, 1, n, k] and
 *   top_log_probs      [1, 1, n, k] most probable first; where top_log_probs was asked for
 *   cached_tokens      [1, 1] prompt tokens that were found in the cache, with the first response
 *   random_seed        [1] u64, with the final response
 *   request_times_ms   [1, 3] f32, with the final response: from arrival to first scheduled, to the first token, to the
 *                      last token; -1 for what never happened
 *   num_iterations     [1, 1] i32, with the final response: iterations in which the request ran
 *
 * A response with an error has none of them. Where the request itself is at fault, so that nothing of it ran, it has
 *
 *   invalid_request    [1] bool, 1
 */
export function* unpackResponses(batch: ResponseBatch, maxSeqLen: number): Generator<Response> {
  const errors = new Map(batch.errors);
  let topStart = 0;
  for (let i = 0; i < batch.count; i++) {
    const flags = batch.flags[i]!;
    const requestId = batch.requestIds[i]!;
    const final = (flags & RESPONSE_FINAL) !== 0;
    if ((flags & RESPONSE_ERROR) !== 0) {
      const isInvalid = (flags & RESPONSE_INVALID) !== 0;
      const outputs = isInvalid ? [{ name: 'invalid_request', shape: [1], data: Uint8Array.of(1) }] : [];
      yield { requestId, outputs, final, error: errors.get(i) ?? 'The request failed.' };
      continue;
    }
    const outputs = coreOutputs(batch, i, maxSeqLen);
    if ((flags & RESPONSE_LOG_PROBS) !== 0) topStart = pushLogProbs(outputs, batch, i, topStart);
    if ((flags & RESPONSE_FIRST) !== 0) {
      const data = batch.cachedTokens.slice(i, i + 1);
      outputs.push({ name: 'cached_tokens', shape: [1, 1], data });
    }
    if (final) pushFinal(outputs, batch, i);
    yield { requestId, outputs, final, error: '' };
  }
}

function coreOutputs(batch: ResponseBatch, i: number, maxSeqLen: number): NamedTensor[] {
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
    { name: 'context_logits', shape: [1, 1, 1], data: new Float32Array(1) },
    { name: 'generation_logits', shape: [1, 1, 1, 1], data: new Float32Array(1) },
    { name: 'finish_reasons', shape: [1, 1], data: Int32Array.of(batch.finishReasons[i]!) },
  ];
}

function pushFinal(outputs: NamedTensor[], batch: ResponseBatch, i: number): void {
  const times = batch.timesMs.slice(3 * i, 3 * i + 3);
  outputs.push(
    { name: 'random_seed', shape: [1], data: batch.seeds.slice(i, i + 1) },
    { name: 'request_times_ms', shape: [1, 3], data: times },
    { name: 'num_iterations', shape: [1, 1], data: batch.numIterations.slice(i, i + 1) },
  );
}

/** Returns where the next response's top log-probs begin. */
function pushLogProbs(outputs: NamedTensor[], batch: ResponseBatch, i: number, topStart: number): number {
  const start = batch.logProbStart[i]!;
  const end = batch.logProbStart[i + 1]!;
  const n = end - start;
  outputs.push({ name: 'output_log_probs', shape: [1, 1, n], data: batch.logProbs.slice(start, end) });
  outputs.push({ name: 'cum_log_probs', shape: [1, 1], data: Float32Array.of(batch.cumLogProbs[i]!) });
  const width = batch.topWidths[i]!;
  if (width === 0) return topStart;
  const topEnd = topStart + n * width;
  const shape = [1, 1, n, width];
  outputs.push({ name: 'top_token_ids', shape, data: batch.topTokens.slice(topStart, topEnd) });
  outputs.push({ name: 'top_log_probs', shape: [...shape], data: batch.topLogProbs.slice(topStart, topEnd) });
  return topEnd;
}
