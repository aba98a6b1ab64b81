import { checkRange, ParameterError, resolveSamplingParams } from '../engine/decoding/sampling-params.js';
import { encodeWordList } from '../engine/decoding/stop-words.js';
import { retentionInputs } from './retention-inputs.js';
import type { TokenRequest } from './token-request.js';
import type { InferenceRequest, Tensor } from './types.js';

const COUNT = { min: 1, max: 2 ** 31 - 1, integer: true };

/** The tensors of a token request. Throws ParameterError for what a tensor could not carry unchanged. */
export function inferenceRequestOf(requestId: bigint, request: TokenRequest): InferenceRequest {
  const sampling = resolveSamplingParams(request);
  checkRange('maxNewTokens', request.maxNewTokens, COUNT);
  if (request.timeLimitMs !== undefined) {
    checkRange('timeLimitMs', request.timeLimitMs, { ...COUNT, integer: false });
  }
  const promptTokens = tokensOf('promptTokens', request.promptTokens);
  const [endId = -1, ...otherEnds] = tokensOf('endTokenIds', request.endTokenIds ?? []);
  const stopWords = request.stopWords?.map((word) => [...tokensOf('stopWords', word)]) ?? [];
  const words = [...otherEnds.map((token) => [token]), ...stopWords];
  const inputs: Record<string, Tensor> = {
    input_ids: { shape: [1, promptTokens.length], data: promptTokens },
    request_output_len: i32(request.maxNewTokens),
    temperature: f32(sampling.temperature),
    runtime_top_k: i32(sampling.topK),
    runtime_top_p: f32(sampling.topP),
    runtime_min_p: f32(sampling.minP),
    repetition_penalty: f32(sampling.repetitionPenalty),
    presence_penalty: f32(sampling.presencePenalty),
    frequency_penalty: f32(sampling.frequencyPenalty),
    min_length: i32(sampling.minLength),
    end_id: i32(endId),
    streaming: bool(request.streaming ?? true),
    return_log_probs: bool(request.returnLogProbs ?? false),
    top_log_probs: i32(request.topLogProbs ?? 0),
    return_context_logits: bool(request.returnContextLogits ?? false),
    return_generation_logits: bool(request.returnGenerationLogits ?? false),
    return_context_log_probs: bool(request.returnContextLogProbs ?? false),
    top_context_log_probs: i32(request.topContextLogProbs ?? 0),
    ...retentionInputs(request.retention ?? {}),
  };
  if (sampling.seed !== null) inputs.random_seed = { shape: [1], data: BigUint64Array.of(sampling.seed) };
  if (words.length > 0) inputs.stop_words_list = encodeWordList(words);
  if (request.timeLimitMs !== undefined) inputs.time_limit_ms = i32(Math.ceil(request.timeLimitMs));
  if (request.cacheSalt !== undefined) {
    if (BigInt.asUintN(64, request.cacheSalt) !== request.cacheSalt) {
      throw new ParameterError(
        'cacheSalt',
        `cacheSalt is ${request.cacheSalt}; it must be from 0 to 2^64 - 1.`,
      );
    }
    inputs.cache_salt = { shape: [1], data: BigUint64Array.of(request.cacheSalt) };
  }
  return { requestId, inputs, ...(request.priority === undefined ? {} : { priority: request.priority }) };
}

/** A copy as Int32Array; a number that is not a whole one would silently become another token. */
function tokensOf(field: string, tokens: Int32Array | readonly number[]): Int32Array {
  const copy = Int32Array.from(tokens);
  for (let i = 0; i < copy.length; i++) {
    if (copy[i] === tokens[i]) continue;
    throw new ParameterError(field, `${field} holds ${tokens[i]} at place ${i}; tokens are whole numbers.`);
  }
  return copy;
}

const i32 = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });
const f32 = (value: number): Tensor => ({ shape: [1], data: Float32Array.of(value) });
const bool = (value: boolean): Tensor => ({ shape: [1], data: Uint8Array.of(value ? 1 : 0) });
