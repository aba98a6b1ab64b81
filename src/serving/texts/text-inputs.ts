import type { ParameterKind, TensorOf } from '../../../callbacks/request/parameter.js';
import {
  NAMED_PARAMETERS,
  type PARAMETERS,
  type ParameterName,
} from '../../../callbacks/request/parameters.js';
import type { DataType, ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { inputOf, outputOf } from './text-config.js';

interface TensorTerm {
  type: DataType;
  /** Without the batch dimension. */
  dims: readonly number[];
  /** A batch of 1 stands before it in the contract of TensorRT-LLM. */
  hasBatch?: true;
}

interface InputTerm extends TensorTerm {
  /** Other names: those of the fields of TensorRT-LLM's text models. */
  also?: readonly string[];
  /** What stands for it in a request of a program, if that is not obvious: as refusals of the engine name it. */
  fields: readonly string[];
}

const ONE = [1];
const ANY = [-1];
const number = (type: DataType, fields: string, ...also: string[]): InputTerm => ({
  type,
  dims: ONE,
  fields: fields === '' ? [] : [fields],
  also,
});
const list = (
  type: DataType,
  fields: string,
  dims: readonly number[] = ANY,
  ...also: string[]
): InputTerm => ({
  type,
  dims,
  fields: fields === '' ? [] : [fields],
  also,
});
const batched = (type: DataType, fields: string, dims: readonly number[] = ANY): InputTerm => ({
  ...list(type, fields, dims),
  hasBatch: true,
});

const OF_KIND = {
  number: 'TYPE_FP32',
  integer: 'TYPE_INT32',
  flag: 'TYPE_BOOL',
  key: 'TYPE_UINT64',
} as const satisfies Record<ParameterKind, DataType>;

/** Tensor of a parameter of text models; never: they do not list it. */
type InputOf<P> = P extends { isNoTextInput: true } ? never : TensorOf<P>;

const { min_length, random_seed, ...samplers } = Object.fromEntries(
  NAMED_PARAMETERS.filter(({ parameter }) => !parameter.isNoTextInput).map(
    ({ name, field, tensor, parameter }) => [
      tensor,
      number(OF_KIND[parameter.kind], name, ...(field === tensor ? [] : [field])),
    ],
  ),
) as { [Name in ParameterName as InputOf<(typeof PARAMETERS)[Name]>]: InputTerm };

/**
 * Inputs of a model that generates text, all of them optional: one of text_input and input_ids is the prompt. Names, types and shapes are
 * those of TensorRT-LLM's batch manager, and beside them those of its backend for Triton.
 */
export const TEXT_INPUTS = {
  text_input: list('TYPE_STRING', '', ONE),
  input_ids: batched('TYPE_INT32', 'promptTokens'),
  input_lengths: number('TYPE_INT32', ''),
  request_output_len: number('TYPE_INT32', 'maxNewTokens', 'max_tokens'),
  end_id: number('TYPE_INT32', 'endTokenIds'),
  pad_id: number('TYPE_INT32', ''),
  stop_words: list('TYPE_STRING', 'stop'),
  stop_words_list: batched('TYPE_INT32', 'stopWords', [2, -1]),
  bad_words: list('TYPE_STRING', ''),
  bad_words_list: batched('TYPE_INT32', 'badWords', [2, -1]),
  embedding_bias: batched('TYPE_FP32', 'embeddingBias'),
  embedding_bias_words: list('TYPE_STRING', ''),
  embedding_bias_weights: list('TYPE_FP32', ''),
  logit_bias_tokens: batched('TYPE_INT32', 'logitBias'),
  logit_bias: batched('TYPE_FP32', ''),
  ...samplers,
  dry_sequence_breakers: batched('TYPE_INT32', 'dryBreakers', [2, -1]),
  allowed_token_ids: batched('TYPE_INT32', 'allowedTokens'),
  min_length,
  random_seed,
  beam_width: number('TYPE_INT32', 'beams.width'),
  len_penalty: number('TYPE_FP32', '', 'length_penalty'),
  early_stopping: number('TYPE_INT32', ''),
  num_return_sequences: number('TYPE_INT32', 'numSequences'),
  first_sequence_index: number('TYPE_INT32', 'firstSequenceIndex'),
  known_output_ids: list('TYPE_INT32', 'knownOutputIds', [-1, -1]),
  streaming: number('TYPE_BOOL', '', 'stream'),
  stop: number('TYPE_BOOL', ''),
  return_log_probs: number('TYPE_BOOL', ''),
  top_log_probs: number('TYPE_INT32', 'topLogProbs'),
  return_context_logits: number('TYPE_BOOL', ''),
  return_generation_logits: number('TYPE_BOOL', ''),
  return_context_log_probs: number('TYPE_BOOL', ''),
  top_context_log_probs: number('TYPE_INT32', 'topContextLogProbs'),
  return_perf_metrics: number('TYPE_BOOL', ''),
  return_num_input_tokens: number('TYPE_BOOL', ''),
  return_num_output_tokens: number('TYPE_BOOL', ''),
  exclude_input_in_output: number('TYPE_BOOL', ''),
  time_limit_ms: number('TYPE_INT32', 'timeLimitMs'),
  cache_salt: number('TYPE_UINT64', 'cacheSalt'),
  guided_decoding_guide_type: list('TYPE_STRING', '', ONE),
  guided_decoding_guide: list('TYPE_STRING', '', ONE),
  logits_post_processor_name: list('TYPE_STRING', '', ONE),
  client_id: number('TYPE_UINT64', 'clientId'),
  draft_input_ids: list('TYPE_INT32', 'draftTokens'),
  draft_logits: list('TYPE_FP32', 'draftLogits', [-1, -1]),
  max_draft_len: number('TYPE_INT32', 'maxDraftLen'),
  prompt_embedding_table: list('TYPE_FP32', 'promptEmbeddings', [-1, -1]),
  prompt_vocab_size: number('TYPE_INT32', ''),
  position_ids: batched('TYPE_INT32', 'positionIds'),
  lora_task_id: number('TYPE_UINT64', 'loraTaskId'),
  lora_weights: list('TYPE_FP32', '', [-1, -1]),
  lora_config: list('TYPE_INT32', '', [-1, 3]),
} satisfies Readonly<Record<string, InputTerm>>;

export type TextInputName = keyof typeof TEXT_INPUTS;

/** Outputs that are tensors of the engine, each with a row for each answer where it says so. */
export const TOKEN_OUTPUTS = {
  output_ids: { type: 'TYPE_INT32', dims: [-1, -1], hasBatch: true },
  sequence_length: { type: 'TYPE_INT32', dims: ANY, hasBatch: true },
  finish_reasons: { type: 'TYPE_INT32', dims: ANY, hasBatch: true },
  cum_log_probs: { type: 'TYPE_FP32', dims: ANY, hasBatch: true },
  output_log_probs: { type: 'TYPE_FP32', dims: [-1, -1], hasBatch: true },
  top_token_ids: { type: 'TYPE_INT32', dims: [-1, -1, -1], hasBatch: true },
  top_log_probs: { type: 'TYPE_FP32', dims: [-1, -1, -1], hasBatch: true },
  context_logits: { type: 'TYPE_FP32', dims: [-1, -1], hasBatch: true },
  generation_logits: { type: 'TYPE_FP32', dims: [-1, -1, -1], hasBatch: true },
  context_log_probs: { type: 'TYPE_FP32', dims: ANY, hasBatch: true },
  context_top_token_ids: { type: 'TYPE_INT32', dims: [-1, -1], hasBatch: true },
  context_top_log_probs: { type: 'TYPE_FP32', dims: [-1, -1], hasBatch: true },
  sequence_index: { type: 'TYPE_INT32', dims: ONE },
  random_seed: { type: 'TYPE_UINT64', dims: ONE },
  num_input_tokens: { type: 'TYPE_INT32', dims: ONE },
  num_output_tokens: { type: 'TYPE_INT32', dims: ONE },
  cached_tokens: { type: 'TYPE_INT32', dims: ONE },
  kv_cache_reused_blocks: { type: 'TYPE_INT32', dims: ONE },
  kv_cache_missed_blocks: { type: 'TYPE_INT32', dims: ONE },
  arrival_time_ns: { type: 'TYPE_INT64', dims: ONE },
  first_scheduled_time_ns: { type: 'TYPE_INT64', dims: ONE },
  first_token_time_ns: { type: 'TYPE_INT64', dims: ONE },
  last_token_time_ns: { type: 'TYPE_INT64', dims: ONE },
} satisfies Readonly<Record<string, TensorTerm>>;

export type TokenOutputName = keyof typeof TOKEN_OUTPUTS;

/** A configuration has a batch dimension of its own, or its shapes are whole. */
const dimsOf = ({ dims, hasBatch }: TensorTerm, isBatched: boolean): number[] => [
  ...(hasBatch && !isBatched ? [1] : []),
  ...dims,
];

/** Names of the inputs with what each stands for. */
const BY_NAME: ReadonlyMap<string, TextInputName> = new Map(
  (Object.entries(TEXT_INPUTS) as [TextInputName, InputTerm][]).flatMap(([name, { also = [] }]) =>
    [name, ...also].map((one) => [one, name] as const),
  ),
);

/** The input that a name stands for; undefined: none does. */
export function textInputOf(name: string): TextInputName | undefined {
  return BY_NAME.get(name);
}

const BY_FIELD: ReadonlyMap<string, TextInputName> = new Map(
  (Object.entries(TEXT_INPUTS) as [TextInputName, InputTerm][]).flatMap(([name, { fields }]) =>
    [name, ...fields].map((one) => [one, name] as const),
  ),
);

/** The input that a refusal of the engine means by a tensor's or a field's name. */
export function inputOfField(field: string): TextInputName | undefined {
  return BY_FIELD.get(field.split('[')[0]!);
}

/** Inputs under all of their names. @param isBatched they have a batch dimension besides @param isLeftOut those that are not taken */
export function textInputs(
  isBatched: boolean,
  isLeftOut: (name: TextInputName) => boolean = () => false,
): ModelInput[] {
  return (Object.entries(TEXT_INPUTS) as [TextInputName, InputTerm][]).flatMap(([name, term]) =>
    isLeftOut(name)
      ? []
      : [name, ...(term.also ?? [])].map((one) => inputOf(one, term.type, true, dimsOf(term, isBatched))),
  );
}

export function tokenOutputs(isBatched: boolean): ModelOutput[] {
  return (Object.entries(TOKEN_OUTPUTS) as [TokenOutputName, TensorTerm][]).map(([name, term]) =>
    outputOf(name, term.type, dimsOf(term, isBatched)),
  );
}
