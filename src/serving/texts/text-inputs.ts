import type { TensorOf } from '../../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS, type PARAMETERS } from '../../../callbacks/request/parameters.js';
import type { ShapeRule, TensorType } from '../../../callbacks/request/tensor-rule.js';
import { FIELD_OF_TENSOR, INPUT_TENSORS } from '../../../callbacks/request/tensors.js';
import type { DataType, ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import { inputOf, outputOf } from './text-config.js';

interface TensorTerm {
  type: DataType;
  /** Without the batch dimension. */
  dims: readonly number[];
  /** A batch of 1 precedes it in the contract of TensorRT-LLM. */
  hasBatch?: true;
}

interface InputTerm extends TensorTerm {
  /** Other names: those of the fields of TensorRT-LLM's text models. */
  also?: readonly string[];
  /** Name that refusals of the engine have for it, if it is another. */
  field?: string;
}

const ONE = [1];
const ANY = [-1];
/** An input that the engine's requests do not have. */
const own = (type: DataType, dims: readonly number[] = ONE): InputTerm => ({ type, dims });

const DATA_TYPES: Readonly<Record<TensorType, DataType>> = {
  i32: 'TYPE_INT32',
  f32: 'TYPE_FP32',
  u64: 'TYPE_UINT64',
  bool: 'TYPE_BOOL',
  text: 'TYPE_STRING',
};

/** Fields of TensorRT-LLM's text models, by the tensors of the same meaning. */
const ALSO: Readonly<Record<string, string>> = {
  request_output_len: 'max_tokens',
  len_penalty: 'length_penalty',
  streaming: 'stream',
  ...Object.fromEntries(
    NAMED_PARAMETERS.flatMap(({ tensor, field }) => (field === tensor ? [] : [[tensor, field]])),
  ),
};

/** Inputs that are tensors of the engine, in this order. */
const engine = <Name extends string>(...names: readonly Name[]): Record<Name, InputTerm> =>
  Object.fromEntries(names.map((name) => [name, engineTerm(name)])) as Record<Name, InputTerm>;

function engineTerm(name: string): InputTerm {
  const { type, shape } = INPUT_TENSORS[name]!;
  const field = FIELD_OF_TENSOR.get(name);
  return {
    type: DATA_TYPES[type],
    ...(type === 'text' ? { dims: ONE } : dimsOfRule(shape)),
    ...(name in ALSO ? { also: [ALSO[name]!] } : {}),
    ...(field === undefined ? {} : { field: name === 'beam_width' ? `${field}.width` : field }),
  };
}

/** Sizes of a rule: those of letters are any. */
function dimsOfRule(shape: ShapeRule): Pick<TensorTerm, 'dims' | 'hasBatch'> {
  if (shape === 'one') return { dims: ONE };
  const dims = shape
    .slice(1, -1)
    .split(', ')
    .map((size) => (/\d/.test(size) ? Number(size) : -1));
  return dims[0] === 1 ? { dims: dims.slice(1), hasBatch: true } : { dims };
}

/** Tensor of a parameter of text models; never: they do not list it. */
type InputOf<P> = P extends { isNoTextInput: true } ? never : TensorOf<P>;
type ParameterInput = {
  [Name in keyof typeof PARAMETERS]: InputOf<(typeof PARAMETERS)[Name]>;
}[keyof typeof PARAMETERS];

const { min_length, random_seed, ...samplers } = engine(
  ...NAMED_PARAMETERS.filter(({ parameter }) => !parameter.isNoTextInput).map(
    ({ tensor }) => tensor as ParameterInput,
  ),
);

/**
 * Inputs of a model that generates text, all of them optional: one of text_input and input_ids is the prompt.
 * Names, types and shapes are those of TensorRT-LLM's batch manager, and in addition those of its backend for
 * Triton; `image` is that of vLLM's.
 */
const TEXT_INPUTS = {
  text_input: own('TYPE_STRING'),
  image: own('TYPE_STRING', ANY),
  ...engine('input_ids', 'input_lengths', 'request_output_len', 'end_id', 'pad_id'),
  stop_words: own('TYPE_STRING', ANY),
  ...engine('stop_words_list'),
  bad_words: own('TYPE_STRING', ANY),
  ...engine('bad_words_list', 'embedding_bias'),
  embedding_bias_words: own('TYPE_STRING', ANY),
  embedding_bias_weights: own('TYPE_FP32', ANY),
  ...engine('logit_bias_tokens', 'logit_bias'),
  ...samplers,
  ...engine('dry_sequence_breakers', 'allowed_token_ids'),
  min_length,
  random_seed,
  ...engine('beam_width', 'len_penalty', 'early_stopping', 'num_return_sequences', 'first_sequence_index'),
  ...engine('known_output_ids', 'streaming'),
  stop: own('TYPE_BOOL'),
  ...engine('return_log_probs', 'top_log_probs', 'return_context_logits', 'return_generation_logits'),
  ...engine('return_context_log_probs', 'top_context_log_probs'),
  return_perf_metrics: own('TYPE_BOOL'),
  return_num_input_tokens: own('TYPE_BOOL'),
  return_num_output_tokens: own('TYPE_BOOL'),
  exclude_input_in_output: own('TYPE_BOOL'),
  ...engine('time_limit_ms', 'cache_salt', 'guided_decoding_guide_type', 'guided_decoding_guide'),
  ...engine('logits_post_processor_name', 'client_id', 'draft_input_ids', 'draft_logits', 'max_draft_len'),
  ...engine('prompt_embedding_table', 'prompt_vocab_size', 'position_ids'),
  ...engine('lora_task_id', 'lora_weights', 'lora_config'),
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

/** Names of the inputs with the input that each means. */
const BY_NAME: ReadonlyMap<string, TextInputName> = new Map(
  (Object.entries(TEXT_INPUTS) as [TextInputName, InputTerm][]).flatMap(([name, { also = [] }]) =>
    [name, ...also].map((one) => [one, name] as const),
  ),
);

/** The input that a name means; undefined: none. */
export function textInputOf(name: string): TextInputName | undefined {
  return BY_NAME.get(name);
}

const BY_FIELD: ReadonlyMap<string, TextInputName> = new Map(
  (Object.entries(TEXT_INPUTS) as [TextInputName, InputTerm][]).flatMap(([name, { field = name }]) =>
    [name, field].map((one) => [one, name] as const),
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
