import {
  checkRange,
  DEFAULT_SAMPLING_PARAMS,
  ParameterError,
  resolveSamplingParams,
  SAMPLING_RANGES,
  type SamplingParams,
} from '../engine/decoding/sampling-params.js';
import { decodeWordList, endingTokens } from '../engine/decoding/stop-words.js';
import type { RequestSpec } from '../engine/request-spec.js';
import type { InferenceRequest, Tensor, TensorData } from './types.js';

export interface RequestLimits {
  vocabSize: number;
  maxBeamWidth: number;
  maxTopLogProbs: number;
}

const MAX_INT32 = 2 ** 31 - 1;
const MAX_U64 = 0xffff_ffff_ffff_ffffn;

const TYPES = {
  i32: Int32Array,
  f32: Float32Array,
  u64: BigUint64Array,
  bool: Uint8Array,
} as const;
type TypeName = keyof typeof TYPES;

/** Shape as the contract has it: 'one' is [1] (or [1, 1], which some clients send). */
type ShapeRule = 'one' | '[1, n]' | '[1, 2, n]';

/** Inputs that are read. */
const INPUTS: Readonly<Record<string, { type: TypeName; shape: ShapeRule }>> = {
  input_ids: { type: 'i32', shape: '[1, n]' },
  request_output_len: { type: 'i32', shape: 'one' },
  beam_width: { type: 'i32', shape: 'one' },
  temperature: { type: 'f32', shape: 'one' },
  runtime_top_k: { type: 'i32', shape: 'one' },
  runtime_top_p: { type: 'f32', shape: 'one' },
  runtime_min_p: { type: 'f32', shape: 'one' },
  repetition_penalty: { type: 'f32', shape: 'one' },
  presence_penalty: { type: 'f32', shape: 'one' },
  frequency_penalty: { type: 'f32', shape: 'one' },
  min_length: { type: 'i32', shape: 'one' },
  random_seed: { type: 'u64', shape: 'one' },
  end_id: { type: 'i32', shape: 'one' },
  pad_id: { type: 'i32', shape: 'one' },
  stop_words_list: { type: 'i32', shape: '[1, 2, n]' },
  streaming: { type: 'bool', shape: 'one' },
  return_log_probs: { type: 'bool', shape: 'one' },
  return_context_logits: { type: 'bool', shape: 'one' },
  return_generation_logits: { type: 'bool', shape: 'one' },
  top_log_probs: { type: 'i32', shape: 'one' },
  time_limit_ms: { type: 'i32', shape: 'one' },
  cache_salt: { type: 'u64', shape: 'one' },
};

/** Inputs of the contract that the engine cannot serve, with what they would need. */
const REFUSED: Readonly<Record<string, string>> = {
  embedding_bias: 'biases on the logits are not supported yet',
  bad_words_list: 'bad words are not supported yet',
  no_repeat_ngram_size: 'n-gram bans are not supported yet',
  len_penalty: 'it belongs to beam search, which is not supported yet',
  early_stopping: 'it belongs to beam search, which is not supported yet',
  prompt_embedding_table: 'prompt tuning is not supported yet',
  prompt_vocab_size: 'prompt tuning is not supported yet',
  position_ids: 'positions of your own are not supported yet',
  lora_task_id: 'LoRA is not supported yet',
  lora_weights: 'LoRA is not supported yet',
  lora_config: 'LoRA is not supported yet',
  draft_input_ids: 'draft tokens are not supported yet',
  draft_logits: 'draft tokens are not supported yet',
};

/** Sampling parameters by the name of their tensor. */
const SAMPLING_INPUTS: Readonly<Record<string, keyof typeof SAMPLING_RANGES>> = {
  temperature: 'temperature',
  runtime_top_k: 'topK',
  runtime_top_p: 'topP',
  runtime_min_p: 'minP',
  repetition_penalty: 'repetitionPenalty',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  min_length: 'minLength',
};

/** A sentence if `requestId` is not a 64-bit unsigned number, else null. */
export function whyIdIsInvalid(requestId: unknown): string | null {
  if (typeof requestId === 'bigint' && requestId >= 0n && requestId <= MAX_U64) return null;
  const found = typeof requestId === 'object' ? 'an object' : String(requestId);
  return `requestId is ${found}; it must be a bigint from 0 to ${MAX_U64}.`;
}

/**
 * Reads and checks the tensors of a request. Throws ParameterError naming field, value and limit. A request that
 * gives none of temperature, runtime_top_k, runtime_top_p and runtime_min_p is greedy. `drawSeed` is asked for a
 * seed where the request gives none.
 */
export function validateRequest(
  request: InferenceRequest,
  limits: RequestLimits,
  drawSeed: () => bigint,
): RequestSpec {
  const inputs = checkInputs(request.inputs);
  const promptTokens = readPrompt(inputs, limits.vocabSize);
  checkBeamWidth(readInt(inputs, 'beam_width', 1, 1, MAX_INT32), limits.maxBeamWidth);
  refuseLogits(inputs);
  const endId = readInt(inputs, 'end_id', -1, -1, limits.vocabSize - 1);
  const stopWords = readStopWords(inputs);
  const sampling = readSampling(inputs);
  return {
    requestId: request.requestId,
    promptTokens,
    maxNewTokens: readInt(inputs, 'request_output_len', undefined, 1, MAX_INT32),
    sampling: { ...sampling, seed: sampling.seed ?? drawSeed() },
    endId,
    padId: readInt(inputs, 'pad_id', Math.max(endId, 0), -1, MAX_INT32),
    stopWords,
    endingTokens: endingTokens(endId, stopWords, limits.vocabSize),
    streaming: readBool(inputs, 'streaming'),
    returnLogProbs: readBool(inputs, 'return_log_probs'),
    topLogProbs: readInt(inputs, 'top_log_probs', 0, 0, limits.maxTopLogProbs),
    priority: readPriority(request.priority),
    arrivalTimeMs: readArrivalTime(request.arrivalTimeMs),
    timeLimitMs: inputs.time_limit_ms ? readInt(inputs, 'time_limit_ms', undefined, 1, MAX_INT32) : null,
    cacheSalt: (inputs.cache_salt?.data[0] as bigint | undefined) ?? 0n,
    // Positions taken from the cache have no logits.
    reusesBlocks: !readBool(inputs, 'return_context_logits'),
  };
}

function readArrivalTime(arrivalTimeMs: unknown): number | null {
  if (arrivalTimeMs === undefined) return null;
  if (typeof arrivalTimeMs === 'number' && Number.isFinite(arrivalTimeMs)) return arrivalTimeMs;
  throw new ParameterError(
    'arrivalTimeMs',
    `arrivalTimeMs is ${String(arrivalTimeMs)}; it must be a number of milliseconds since the epoch.`,
  );
}

function checkInputs(inputs: unknown): Record<string, Tensor> {
  if (typeof inputs !== 'object' || inputs === null) {
    throw new ParameterError('inputs', 'inputs is missing; it must map names of tensors to tensors.');
  }
  for (const [name, tensor] of Object.entries(inputs)) {
    const refusal = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined;
    if (refusal !== undefined) throw new ParameterError(name, `${name} is refused: ${refusal}.`);
    const rule = Object.hasOwn(INPUTS, name) ? INPUTS[name] : undefined;
    if (rule === undefined) {
      const known = Object.keys(INPUTS).join(', ');
      throw new ParameterError(name, `${name} is not the name of an input tensor; known are ${known}.`);
    }
    checkTensor(name, tensor, rule.type, rule.shape);
  }
  for (const name of ['input_ids', 'request_output_len']) {
    if (!Object.hasOwn(inputs, name)) throw new ParameterError(name, `${name} is missing; it is required.`);
  }
  return inputs as Record<string, Tensor>;
}

function checkTensor(name: string, tensor: unknown, type: TypeName, rule: ShapeRule): void {
  const { shape, data } = (tensor ?? {}) as { shape?: unknown; data?: unknown };
  if (!Array.isArray(shape) || !shape.every((size) => Number.isInteger(size) && size >= 0)) {
    throw new ParameterError(name, `${name} has no shape; it must be an array of whole numbers.`);
  }
  if (!(data instanceof TYPES[type])) {
    const found = typeof data === 'object' && data !== null ? data.constructor.name : typeof data;
    throw new ParameterError(
      name,
      `${name} holds ${found}; ${TYPES[type].name} (${type}) is expected for its data.`,
    );
  }
  if (!fitsRule(shape, rule)) {
    const expected = rule === 'one' ? '[1]' : rule;
    throw new ParameterError(name, `${name} has the shape [${shape.join(', ')}]; ${expected} is expected.`);
  }
  const size = shape.reduce((product: number, dimension: number) => product * dimension, 1);
  if (size !== (data as TensorData).length) {
    throw new ParameterError(
      name,
      `${name} has the shape [${shape.join(', ')}], which is ${size} values; its data has ${data.length}.`,
    );
  }
}

function fitsRule(shape: number[], rule: ShapeRule): boolean {
  switch (rule) {
    case 'one':
      return shape.length >= 1 && shape.length <= 2 && shape.every((size) => size === 1);
    case '[1, n]':
      return shape.length === 2 && shape[0] === 1;
    case '[1, 2, n]':
      return shape.length === 3 && shape[0] === 1 && shape[1] === 2;
  }
}

function readPrompt(inputs: Record<string, Tensor>, vocabSize: number): Int32Array {
  const tokens = inputs.input_ids!.data as Int32Array;
  if (tokens.length === 0) {
    throw new ParameterError('input_ids', 'input_ids is empty; at least 1 token is needed.');
  }
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (token >= 0 && token < vocabSize) continue;
    throw new ParameterError(
      'input_ids',
      `input_ids holds ${token} at place ${i}; tokens are from 0 to ${vocabSize - 1}.`,
    );
  }
  return tokens;
}

function readStopWords({ stop_words_list: words }: Record<string, Tensor>): Int32Array[] {
  return words ? decodeWordList('stop_words_list', words.shape, words.data as Int32Array) : [];
}

function checkBeamWidth(beamWidth: number, maxBeamWidth: number): void {
  if (beamWidth <= maxBeamWidth) return;
  throw new ParameterError(
    'beam_width',
    `beam_width is ${beamWidth}; this engine takes at most maxBeamWidth = ${maxBeamWidth}.`,
  );
}

function refuseLogits(inputs: Record<string, Tensor>): void {
  for (const name of ['return_context_logits', 'return_generation_logits']) {
    if (readBool(inputs, name)) {
      throw new ParameterError(name, `${name} is refused: returning logits is not supported yet.`);
    }
  }
}

function readSampling(inputs: Record<string, Tensor>): SamplingParams {
  const given: Partial<SamplingParams> = {};
  for (const [name, field] of Object.entries(SAMPLING_INPUTS)) {
    const tensor = inputs[name];
    if (!tensor) continue;
    const value = tensor.data[0] as number;
    checkRange(name, value, SAMPLING_RANGES[field]);
    given[field] = value;
  }
  const samples = ['temperature', 'runtime_top_k', 'runtime_top_p', 'runtime_min_p'].some((n) => inputs[n]);
  if (!samples) given.temperature = 0;
  if (inputs.random_seed) given.seed = inputs.random_seed.data[0] as bigint;
  return resolveSamplingParams({ ...DEFAULT_SAMPLING_PARAMS, ...given });
}

function readInt(
  inputs: Record<string, Tensor>,
  name: string,
  fallback: number | undefined,
  min: number,
  max: number,
): number {
  const tensor = inputs[name];
  if (!tensor) return fallback!;
  const value = tensor.data[0] as number;
  checkRange(name, value, { min, max, integer: true });
  return value;
}

function readBool(inputs: Record<string, Tensor>, name: string): boolean {
  return inputs[name] !== undefined && inputs[name].data[0] !== 0;
}

function readPriority(priority: number | undefined): number {
  if (priority === undefined) return 0.5;
  checkRange('priority', priority, { min: 0, max: 1, integer: false });
  return priority;
}
