import { input, says } from '../base/named-text.js';
import type { ParameterKind } from '../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';
import { retentionInputs } from '../callbacks/retention-inputs.js';
import {
  checkRange,
  ParameterError,
  resolveSamplingParams,
  type SamplingParams,
} from '../callbacks/sampling-params.js';
import { SharedTensors } from '../callbacks/shared-tensors.js';
import { encodeWordList } from '../callbacks/stop-words.js';
import type { TokenRequest } from '../callbacks/token-request.js';
import type { InferenceRequest, Tensor } from '../callbacks/types.js';
import type { AdapterWeights } from '../models/adapters/adapter-weights.js';
import { type LoraTensors, writeLoraTensors } from '../models/adapters/lora-tensors.js';
import { sharedTensorsOf } from '../models/adapters/shared-adapter.js';

const COUNT = { min: 1, max: 2 ** 31 - 1, integer: true };

/** Makes the tensors of a token request. Throws ParameterError for values that a tensor could not carry unchanged. */
export function inferenceRequestOf(requestId: bigint, request: TokenRequest): InferenceRequest {
  const sampling = resolveSamplingParams(request);
  checkRange('maxNewTokens', request.maxNewTokens, COUNT);
  if (request.timeLimitMs !== undefined) {
    checkRange('timeLimitMs', request.timeLimitMs, { ...COUNT, integer: false });
  }
  const { shared = new SharedTensors() } = request;
  const promptTokens = shared.of(request.promptTokens, () => {
    const data = tokensOf('promptTokens', request.promptTokens);
    return { shape: [1, data.length], data };
  });
  const [endId = -1, ...otherEnds] = tokensOf('endTokenIds', request.endTokenIds ?? []);
  const words = [...otherEnds.map((token) => [token]), ...wordsOf('stopWords', request.stopWords)];
  const inputs: Record<string, Tensor> = {
    input_ids: promptTokens,
    request_output_len: i32(request.maxNewTokens),
    ...samplingInputs(sampling),
    end_id: i32(endId),
    streaming: bool(streams(request)),
    ...sequenceInputs(request),
    ...knownOutputs(request),
    return_log_probs: bool(request.returnLogProbs ?? false),
    top_log_probs: i32(request.topLogProbs ?? 0),
    return_context_logits: bool(request.returnContextLogits ?? false),
    return_generation_logits: bool(request.returnGenerationLogits ?? false),
    return_context_log_probs: bool(request.returnContextLogProbs ?? false),
    top_context_log_probs: i32(request.topContextLogProbs ?? 0),
    ...(request.returnContextProgress ? { return_context_progress: bool(true) } : {}),
    ...biasInputs(request, shared),
    ...promptInputs(request),
    ...adapterInputs(request, shared),
    ...retentionInputs(request.retention ?? {}),
  };
  if (words.length > 0) inputs.stop_words_list = encodeWordList(words);
  const { badWords = [] } = request;
  if (badWords.length > 0) {
    inputs.bad_words_list = shared.of(badWords, () => encodeWordList(wordsOf('badWords', badWords)));
  }
  const { dryBreakers = [], allowedTokens } = request;
  if (dryBreakers.length > 0) {
    inputs.dry_sequence_breakers = shared.of(dryBreakers, () =>
      encodeWordList(wordsOf('dryBreakers', dryBreakers)),
    );
  }
  if (allowedTokens !== undefined) {
    inputs.allowed_token_ids = shared.of(allowedTokens, () => {
      const data = tokensOf('allowedTokens', allowedTokens);
      return { shape: [1, data.length], data };
    });
  }
  if (request.reasoningBudget !== undefined) {
    const { tokens, endToken, beginToken = -1 } = request.reasoningBudget;
    checkRange('reasoningBudget.tokens', tokens, { ...COUNT, min: 0 });
    inputs.reasoning_budget = { shape: [1, 3], data: Int32Array.of(tokens, endToken, beginToken) };
  }
  if (request.timeLimitMs !== undefined) inputs.time_limit_ms = i32(Math.ceil(request.timeLimitMs));
  if (request.cacheSalt !== undefined) inputs.cache_salt = u64('cacheSalt', request.cacheSalt);
  if (request.clientId !== undefined) inputs.client_id = u64('clientId', request.clientId);
  const draft = tokensOf('draftTokens', request.draftTokens ?? []);
  if (draft.length > 0) inputs.draft_input_ids = { shape: [draft.length], data: draft };
  const { draftLogits = [] } = request;
  if (draftLogits.length > 0) inputs.draft_logits = rowsTensor('draftLogits', draftLogits);
  if (request.maxDraftLen !== undefined) {
    checkRange('maxDraftLen', request.maxDraftLen, { ...COUNT, min: 0 });
    inputs.max_draft_len = i32(request.maxDraftLen);
  }
  if (request.logitsPostProcessor !== undefined) {
    inputs.logits_post_processor_name = processorName(request.logitsPostProcessor);
  }
  if (request.guide !== undefined) {
    inputs.guided_decoding_guide_type = text(request.guide.type);
    const { guide } = request;
    inputs.guided_decoding_guide = shared.of(guide, () => text(guide.guide));
  }
  return { requestId, inputs, ...(request.priority === undefined ? {} : { priority: request.priority }) };
}

/** An empty tensor would be one that was not given. */
function processorName(name: string): Tensor {
  if (name !== '') return text(name);
  throw new ParameterError(
    'logitsPostProcessor',
    says`${input('logitsPostProcessor')} is empty; it must be the name of a logits post-processor.`,
  );
}

/** Tensors of the parameters that are not their defaults, and of the temperature: without one a request is greedy. */
function samplingInputs(sampling: SamplingParams): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  for (const { name, tensor, parameter } of NAMED_PARAMETERS) {
    const value = sampling[name];
    if (name === 'temperature' || value !== parameter.default)
      inputs[tensor] = OF_KIND[parameter.kind](value as never);
  }
  return inputs;
}

/** True where pieces are streamed; beams are reported only at their end. */
export function streams({ streaming = true, beams }: TokenRequest): boolean {
  return streaming && (beams?.width ?? 1) === 1;
}

function sequenceInputs({
  numSequences = 1,
  firstSequenceIndex = 0,
  beams,
}: TokenRequest): Record<string, Tensor> {
  checkRange('numSequences', numSequences, COUNT);
  checkRange('firstSequenceIndex', firstSequenceIndex, { ...COUNT, min: 0 });
  const inputs: Record<string, Tensor> = {};
  if (numSequences > 1) inputs.num_return_sequences = i32(numSequences);
  if (firstSequenceIndex > 0) inputs.first_sequence_index = i32(firstSequenceIndex);
  if (beams === undefined) return inputs;
  const { width, lengthPenalty = 1, earlyStopping = false } = beams;
  checkRange('beams.width', width, COUNT);
  return {
    ...inputs,
    beam_width: i32(width),
    len_penalty: f32(lengthPenalty),
    early_stopping: i32(earlyStopping === 'never' ? 2 : Number(earlyStopping)),
  };
}

/** Tensor of known outputs, whose rows are as long as the longest list. */
function knownOutputs({ knownOutputIds: lists = [] }: TokenRequest): Record<string, Tensor> {
  if (!Array.isArray(lists)) {
    throw new ParameterError(
      'knownOutputIds',
      says`${input('knownOutputIds')} is ${String(lists)}; lists of tokens are expected, one for each sequence.`,
    );
  }
  const rows = lists.map(knownTokens);
  const width = rows.reduce((most, { length }) => Math.max(most, length), 0);
  if (width === 0) return {};
  const data = new Int32Array(rows.length * width).fill(-1);
  for (const [i, row] of rows.entries()) data.set(row, i * width);
  return { known_output_ids: { shape: [rows.length, width], data } };
}

/** Known tokens of a list, which must all be 0 or more: the tensor marks the end of a list with -1. */
function knownTokens(list: Int32Array | readonly number[], i: number): Int32Array {
  const field = `knownOutputIds[${i}]`;
  if (!Array.isArray(list) && !(list instanceof Int32Array)) {
    throw new ParameterError(
      field,
      says`${input(field)} is ${String(list)}; a list of tokens for each sequence is expected.`,
    );
  }
  const tokens = tokensOf(field, list);
  const wrong = tokens.findIndex((token) => token < 0);
  if (wrong < 0) return tokens;
  throw new ParameterError(
    field,
    says`${input(field)} holds ${tokens[wrong]} at place ${wrong}; tokens are from 0 on.`,
  );
}

/** Number of known output tokens of a sequence, without an end token at their end. */
export function numKnownOutputs({ knownOutputIds, endTokenIds }: TokenRequest, sequence: number): number {
  const list = Array.isArray(knownOutputIds) ? (knownOutputIds[sequence] ?? []) : [];
  // A value that is no list of tokens is refused where the tensors are made.
  if (!Array.isArray(list) && !(list instanceof Int32Array)) return 0;
  const endsWithEndId = list.length > 0 && list.at(-1) === endTokenIds?.[0];
  return list.length - (endsWithEndId ? 1 : 0);
}

function biasInputs(
  { logitBias, embeddingBias }: TokenRequest,
  shared: Pick<SharedTensors, 'of'>,
): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  if (embeddingBias !== undefined) {
    inputs.embedding_bias = shared.of(embeddingBias, () => ({
      shape: [1, embeddingBias.length],
      data: embeddingBias.slice(),
    }));
  }
  if (logitBias !== undefined && logitBias.size > 0) {
    const shape = [1, logitBias.size];
    inputs.logit_bias_tokens = shared.of(logitBias, () => ({
      shape,
      data: tokensOf('logitBias', [...logitBias.keys()]),
    }));
    const values = () => ({ shape, data: Float32Array.from(logitBias.values()) });
    inputs.logit_bias = shared.of(logitBias, values, 'values');
  }
  return inputs;
}

function promptInputs({ promptEmbeddings: rows, positionIds }: TokenRequest): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  if (rows !== undefined && rows.length > 0) {
    inputs.prompt_embedding_table = rowsTensor('promptEmbeddings', rows);
  }
  if (positionIds !== undefined) {
    const data = tokensOf('positionIds', positionIds);
    inputs.position_ids = { shape: [1, data.length], data };
  }
  return inputs;
}

/** A tensor of rows of one length. */
function rowsTensor(field: string, rows: readonly Float32Array[]): Tensor {
  const width = rows[0]!.length;
  const data = new Float32Array(rows.length * width);
  for (const [i, row] of rows.entries()) {
    if (row.length !== width) {
      throw new ParameterError(
        field,
        says`${input(field)} has ${row.length} values in row ${i} and ${width} in row 0; all rows have the same length.`,
      );
    }
    data.set(row, i * width);
  }
  return { shape: [rows.length, width], data };
}

/** The engine refuses weights without an id. */
function adapterInputs(
  { loraTaskId, adapter }: TokenRequest,
  shared: Pick<SharedTensors, 'of'>,
): Record<string, Tensor> {
  return {
    ...(loraTaskId === undefined ? {} : { lora_task_id: u64('loraTaskId', loraTaskId) }),
    ...(adapter === undefined ? {} : adapterTensors(adapter, shared)),
  };
}

/** Tensors of an adapter's weights, in float32. */
export function adapterTensors(
  adapter: AdapterWeights,
  shared: Pick<SharedTensors, 'of'>,
): Record<'lora_weights' | 'lora_config', Tensor> {
  let written: LoraTensors | undefined;
  const write = () => (written ??= sharedTensorsOf(adapter) ?? writeLoraTensors(adapter));
  const weights = () => ({ shape: [...write().weightsShape], data: write().weights });
  const config = () => ({ shape: [...write().configShape], data: write().config });
  return { lora_weights: shared.of(adapter, weights), lora_config: shared.of(adapter, config, 'config') };
}

/** Words as lists of tokens, none of them empty: the layout could not tell an empty word from none. */
function wordsOf(field: string, words: TokenRequest['stopWords']): number[][] {
  if (words?.some((word) => word.length === 0)) {
    throw new ParameterError(
      field,
      says`${input(field)} holds a word without tokens; at least 1 token is needed.`,
    );
  }
  return words?.map((word) => [...tokensOf(field, word)]) ?? [];
}

/** Copies tokens into an Int32Array, checking them: a number that is not whole would silently become another token. */
function tokensOf(field: string, tokens: Int32Array | readonly number[]): Int32Array {
  const copy = Int32Array.from(tokens);
  for (let i = 0; i < copy.length; i++) {
    if (copy[i] === tokens[i]) continue;
    throw new ParameterError(
      field,
      says`${input(field)} holds ${tokens[i]} at place ${i}; whole numbers are expected.`,
    );
  }
  return copy;
}

const i32 = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });
const f32 = (value: number): Tensor => ({ shape: [1], data: Float32Array.of(value) });
const bool = (value: boolean): Tensor => ({ shape: [1], data: Uint8Array.of(value ? 1 : 0) });

/** Tensors of parameters, whose values have been checked. */
const OF_KIND: Readonly<Record<ParameterKind, (value: never) => Tensor>> = {
  number: f32,
  integer: i32,
  flag: bool,
  key: (value: bigint) => ({ shape: [1], data: BigUint64Array.of(value) }),
};

function u64(field: string, value: bigint): Tensor {
  if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) {
    throw new ParameterError(
      field,
      says`${input(field)} is ${value}; it must be a bigint from 0 to 2^64 - 1, such as 1n.`,
    );
  }
  return { shape: [1], data: BigUint64Array.of(value) };
}

function text(value: string): Tensor {
  const data = new TextEncoder().encode(value);
  return { shape: [data.length], data };
}
