import type { TokenRequest } from '../token-request.js';
import type { ParameterName } from './parameters.js';
import type { ShapeRule, TensorRule, TensorType } from './tensor-rule.js';

/**
 * What a field of a request holds:
 *
 *   number        a number; as a tensor a whole one, whose limit the engine knows
 *   count         a whole number from `min` on
 *   milliseconds  a number from 1 on; as a tensor the next whole one
 *   flag, text
 *   key           a bigint from 0 to 2^64 - 1
 *   ids           a few token ids, as a list
 *   tokens        token ids, or positions
 *   words         lists of token ids, none of them empty
 *   lists         lists of token ids
 *   floats        a Float32Array
 *   rows          Float32Arrays of one length
 *   bias          a Map of token ids and numbers
 *   beams, budget, retention, guide   the object of that field
 *   here          something that means nothing in another process
 */
export type FieldKind =
  | ('number' | 'count' | 'milliseconds' | 'flag' | 'text' | 'key')
  | ('ids' | 'tokens' | 'words' | 'lists' | 'floats' | 'rows' | 'bias')
  | ('beams' | 'budget' | 'retention' | 'guide' | 'here');

/**
 * One field of TokenRequest that is no parameter of sampling. Each fact stands here once: checks, tensors, messages,
 * JSON and names follow from it.
 */
export interface RequestField {
  kind: FieldKind;
  /** Least value of a count. */
  min?: number;
  /** A number must be greater than `above`, and at most `max`. */
  within?: { above: number; max: number };
  /** Limits of a number that is no tensor, and what one that is not given is. */
  range?: { min: number; max: number; integer: boolean };
  default?: number;
  /** Input tensor that carries it, for GptManager and for KServe; its type and shape are those of the kind. */
  tensor?: string;
  /** Shape of that tensor, where it is another than the kind's. */
  shape?: ShapeRule;
  /** Input tensors of a field that has several, the one that refusals name first. */
  tensors?: Readonly<Record<string, TensorRule>>;
  /** True if the tensors but the first are parts of the field, with names of their own in refusals. */
  hasParts?: true;
  /** True if it is not sent to workers of a queue. */
  staysInGateway?: true;
  /** Option of programs that ask for texts. Absent: they have none. */
  option?: string;
  /** Field of the HTTP routes. Default: the option in snake case. */
  field?: string;
  /** Names on routes that differ. */
  routes?: Readonly<Record<string, string>>;
  /** Flag of commands that ask a model. */
  flag?: string;
}

const i32 = (shape: ShapeRule): TensorRule => ({ type: 'i32', shape });
const f32 = (shape: ShapeRule): TensorRule => ({ type: 'f32', shape });
const text: TensorRule = { type: 'text', shape: '[n]' };

/**
 * The one table of what a request carries besides PARAMETERS. Its order is that in which values are checked. To add a
 * field, add its entry here, its line in TokenRequest and the code that reads it.
 */
export const REQUEST_FIELDS = {
  promptTokens: { kind: 'tokens', tensor: 'input_ids' },
  maxNewTokens: {
    kind: 'count',
    min: 1,
    tensor: 'request_output_len',
    option: 'maxTokens',
    routes: { responses: 'max_output_tokens' },
    flag: 'max-tokens',
  },
  timeLimitMs: { kind: 'milliseconds', tensor: 'time_limit_ms', option: 'timeLimitMs' },
  endTokenIds: { kind: 'ids', tensor: 'end_id' },
  stopWords: { kind: 'words', tensor: 'stop_words_list', option: 'stopTokens', field: 'stop_token_ids' },
  streaming: { kind: 'flag', tensor: 'streaming' },
  numSequences: { kind: 'count', min: 1, tensor: 'num_return_sequences', option: 'n' },
  firstSequenceIndex: { kind: 'count', min: 0, tensor: 'first_sequence_index' },
  beams: {
    kind: 'beams',
    tensors: { beam_width: i32('one'), len_penalty: f32('one'), early_stopping: i32('one') },
    hasParts: true,
    option: 'beams',
    field: 'best_of',
  },
  knownOutputIds: { kind: 'lists', tensor: 'known_output_ids' },
  returnLogProbs: { kind: 'flag', tensor: 'return_log_probs' },
  topLogProbs: {
    kind: 'number',
    tensor: 'top_log_probs',
    option: 'logProbs',
    field: 'top_logprobs',
    routes: { completions: 'logprobs' },
  },
  returnContextLogits: { kind: 'flag', tensor: 'return_context_logits', option: 'returnContextLogits' },
  returnGenerationLogits: {
    kind: 'flag',
    tensor: 'return_generation_logits',
    option: 'returnGenerationLogits',
  },
  returnContextLogProbs: { kind: 'flag', tensor: 'return_context_log_probs' },
  topContextLogProbs: {
    kind: 'number',
    tensor: 'top_context_log_probs',
    option: 'contextLogProbs',
    field: 'prompt_logprobs',
  },
  returnContextProgress: { kind: 'flag', tensor: 'return_context_progress' },
  embeddingBias: { kind: 'floats', tensor: 'embedding_bias', option: 'embeddingBias' },
  logitBias: {
    kind: 'bias',
    tensors: { logit_bias_tokens: i32('[1, n]'), logit_bias: f32('[1, n]') },
    option: 'logitBias',
  },
  promptEmbeddings: {
    kind: 'rows',
    tensor: 'prompt_embedding_table',
    shape: '[n, P]',
    option: 'promptEmbeddings',
  },
  joinedEmbeddings: { kind: 'here' },
  imageGrids: { kind: 'lists', tensor: 'image_grids', shape: '[n, 3]' },
  // Workers fetch them.
  sentPictures: { kind: 'here' },
  positionIds: { kind: 'tokens', tensor: 'position_ids', option: 'positionIds' },
  // Workers number adapters each for itself: they go by name.
  loraTaskId: { kind: 'key', tensor: 'lora_task_id', staysInGateway: true },
  adapter: {
    kind: 'here',
    tensors: {
      lora_weights: { ...f32('[n, h]'), mayHaveBatch: true },
      lora_config: { ...i32('[n, 3]'), mayHaveBatch: true },
    },
  },
  retention: {
    kind: 'retention',
    tensors: { retention_ranges: i32('[1, n, 4]'), decode_retention: i32('[1, 2]') },
  },
  badWords: { kind: 'words', tensor: 'bad_words_list', option: 'badWords' },
  dryBreakers: {
    kind: 'words',
    tensor: 'dry_sequence_breakers',
    option: 'dryBreakers',
    field: 'dry_sequence_breakers',
  },
  allowedTokens: {
    kind: 'tokens',
    tensor: 'allowed_token_ids',
    option: 'allowedTokens',
    field: 'allowed_token_ids',
  },
  reasoningBudget: {
    kind: 'budget',
    tensors: { reasoning_budget: i32('[1, 3]') },
    option: 'reasoningBudget',
    field: 'thinking_token_budget',
  },
  cacheSalt: { kind: 'key', tensor: 'cache_salt', option: 'cacheSalt' },
  clientId: { kind: 'key', tensor: 'client_id' },
  draftTokens: { kind: 'tokens', tensor: 'draft_input_ids', shape: '[d]' },
  draftLogits: { kind: 'rows', tensor: 'draft_logits', shape: '[d, V]' },
  maxDraftLen: { kind: 'count', min: 0, tensor: 'max_draft_len' },
  logitsPostProcessor: { kind: 'text', tensor: 'logits_post_processor_name' },
  guide: {
    kind: 'guide',
    tensors: { guided_decoding_guide_type: text, guided_decoding_guide: text },
  },
  // Higher first.
  priority: { kind: 'number', range: { min: 0, max: 1, integer: false }, default: 0.5, option: 'priority' },
  adapterName: { kind: 'text' },
  label: { kind: 'text' },
  // Whose turn it is was decided before a request is offered.
  queueKey: { kind: 'text', staysInGateway: true },
  queueWeight: { kind: 'number', within: { above: 0, max: 1000 }, staysInGateway: true },
  engineFingerprint: { kind: 'text', staysInGateway: true },
  signal: { kind: 'here' },
  shared: { kind: 'here' },
  // What a worker needs of it is in the message that carries the request.
  trace: { kind: 'here' },
} as const satisfies Readonly<Record<Exclude<keyof TokenRequest, ParameterName>, RequestField>>;

export type FieldName = keyof typeof REQUEST_FIELDS;

/** The fields with their names, in the table's order. */
export const NAMED_FIELDS = Object.entries(REQUEST_FIELDS) as readonly (readonly [FieldName, RequestField])[];

/** Tensor of a field of one tensor, where the field names no other shape. */
const OF_KIND: Partial<Record<FieldKind, { type: TensorType; shape: ShapeRule }>> = {
  number: i32('one'),
  count: i32('one'),
  milliseconds: i32('one'),
  flag: { type: 'bool', shape: 'one' },
  text,
  key: { type: 'u64', shape: 'one' },
  ids: i32('one'),
  tokens: i32('[1, n]'),
  words: i32('[1, 2, n]'),
  lists: i32('[s, n]'),
  floats: f32('[1, V]'),
  rows: f32('[n, P]'),
};

/** The input tensors of a field, the one that refusals name first; none: it is no tensor. */
export function tensorsOfField({ kind, tensor, shape, tensors = {} }: RequestField): [string, TensorRule][] {
  if (tensor === undefined) return Object.entries(tensors);
  const rule = OF_KIND[kind]!;
  return [[tensor, shape === undefined ? rule : { ...rule, shape }]];
}
