import type { NamedParameter } from '../../../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../../../callbacks/request/parameters.js';
import type { OtherFields } from '../../../schemas/fields-node.js';
import { lacking, NO_BEARING, named, without, withoutBearing } from '../../../schemas/other-field.js';

/** Names that other servers have for our parameters. @param nameOf the name here; null: the route lacks the parameter */
function namesElsewhere(nameOf: (one: NamedParameter) => string | null): OtherFields {
  const fields = NAMED_PARAMETERS.flatMap((one) => {
    const here = nameOf(one);
    const { elsewhere = {} } = one.parameter;
    return here === null
      ? []
      : Object.entries(elsewhere).map(([name, harmless]) => [name, named(here, ...harmless)] as const);
  });
  return Object.fromEntries(fields);
}

/**
 * Fields of vLLM, llama.cpp's server, Ollama, Mistral, OpenRouter and others for text that is generated. What would
 * change the answer is refused wherever it asks for something. A field that a route's schema has is not looked up here.
 */
const OTHER_GENERATION_FIELDS: OtherFields = {
  ...withoutBearing('request_id id_slot slot_id keep_alive t_max_predict_ms n_indent debug'),
  top_a: lacking('top-a sampling', 0),
  tfs_z: lacking('tail-free sampling', 1),
  epsilon_cutoff: lacking('cut-offs of this kind', 0),
  eta_cutoff: lacking('cut-offs of this kind', 0),
  ...namesElsewhere(({ field }) => field),
  smoothing_factor: lacking('quadratic sampling', 0),
  samplers: lacking('an order of samplers to choose'),
  min_keep: lacking('a least number of tokens to draw among', 0, 1),
  logits_processors: lacking('processors of logits in a request', []),
  mm_processor_kwargs: lacking('processors of images', {}),
  kv_transfer_params: lacking('transfers of caches'),
  vllm_xargs: lacking('arguments of plugins', {}),
  spaces_between_special_tokens: lacking('text without them', true),
  reasoning_format: lacking('a choice of where reasoning is put', 'auto', 'deepseek'),
  thinking: named('chat_template_kwargs'),
  enable_thinking: named('chat_template_kwargs'),
  format: named('response_format', ''),
  options: lacking("Ollama's options on this route", {}),
  num_predict: named('max_tokens', -1),
  max_new_tokens: named('max_tokens'),
  n_keep: lacking('a window that moves on request', 0, -1),
  stop_sequences: named('stop', []),
  stop_regex: lacking('regular expressions that end an answer', []),
  negative_prompt: lacking('guidance by a second prompt', ''),
  guidance_scale: lacking('guidance by a second prompt', 1),
  safe_prompt: lacking('prompts of its own', false),
  models: lacking('other models to fall back on', []),
  plugins: lacking('plugins', []),
  images: lacking('images', []),
  image_data: lacking('images', []),
  multimodal_data: lacking('images', []),
  bots: lacking('bots', []),
};

/** Fields of other routes, with their names here; null: there is none. */
function ofOtherRoutes(names: Readonly<Record<string, string | null>>): OtherFields {
  const fields = Object.entries(names).map(([name, here]) => {
    return [name, here === null ? lacking('it on this route', false, 0, 1, []) : named(here, false, [])];
  });
  return Object.fromEntries(fields);
}

export const OTHER_CHAT_FIELDS: OtherFields = {
  ...OTHER_GENERATION_FIELDS,
  reasoning: named('reasoning_effort'),
  ...ofOtherRoutes({
    prompt: 'messages',
    input: 'messages',
    instructions: 'messages',
    system: 'messages',
    max_output_tokens: 'max_completion_tokens',
    suffix: null,
    previous_response_id: null,
    conversation: null,
  }),
};

const NO_REASONING = 'answers with reasoning on this route';

export const OTHER_COMPLETION_FIELDS: OtherFields = {
  ...OTHER_GENERATION_FIELDS,
  include_reasoning: lacking(NO_REASONING, true, false),
  reasoning: lacking(NO_REASONING),
  thinking_token_budget: lacking(NO_REASONING, -1),
  thinking_budget: lacking(NO_REASONING, -1),
  thinking_budget_tokens: lacking(NO_REASONING, -1),
  chat_template: lacking('templates on this route'),
  documents: lacking('documents for a chat template on this route', []),
  ...ofOtherRoutes({
    messages: 'prompt',
    input: 'prompt',
    system: 'prompt',
    input_suffix: 'suffix',
    max_completion_tokens: 'max_tokens',
    max_output_tokens: 'max_tokens',
    top_logprobs: 'logprobs',
    tools: null,
    tool_choice: null,
    functions: null,
    function_call: null,
    reasoning_effort: null,
    continue_final_message: null,
    chat_template_kwargs: null,
  }),
};

export const OTHER_RESPONSE_FIELDS: OtherFields = {
  ...OTHER_GENERATION_FIELDS,
  include_reasoning: lacking('answers without their reasoning on this route', true),
  n_predict: named('max_output_tokens', -1),
  add_special_tokens: lacking('a choice of special tokens on this route', false),
  ...withoutBearing('guided_decoding_backend timings_per_token return_progress'),
  cache_prompt: lacking('prompts outside of the cache on this route', true),
  truncate_prompt_tokens: named('truncation'),
  documents: lacking('documents for the chat template on this route', []),
  chat_template: lacking('templates of a request on this route'),
  echo: lacking('answers that repeat the last message on this route', false),
  return_tokens_as_token_ids: lacking('token ids as names of tokens on this route', false),
  grammar: named('structured_outputs.grammar', ''),
  json_schema: named('text.format'),
  guided_json_object: named('structured_outputs.json_object', false),
  guided_whitespace_pattern: named('structured_outputs.whitespace_pattern'),
  ...ofOtherRoutes({
    messages: 'input',
    system: 'instructions',
    max_tokens: 'max_output_tokens',
    max_completion_tokens: 'max_output_tokens',
    response_format: 'text.format',
    reasoning_effort: 'reasoning.effort',
    logprobs: 'include',
    n: null,
    best_of: null,
    use_beam_search: null,
    functions: 'tools',
    function_call: 'tool_choice',
    guided_json: 'text.format',
    guided_regex: 'structured_outputs.regex',
    guided_choice: 'structured_outputs.choice',
    guided_grammar: 'structured_outputs.grammar',
    prompt_logprobs: null,
    return_token_ids: null,
    suffix: null,
    continue_final_message: null,
    add_generation_prompt: null,
  }),
};

/** Fields of other servers' requests for embeddings, rankings and scores. */
export const OTHER_ENCODER_FIELDS: OtherFields = {
  ...withoutBearing('request_id priority embedding_types'),
  normalize: lacking('embeddings of another length', true),
  use_activation: lacking('scores without activation', true),
  activation: lacking('scores without activation', true),
  add_special_tokens: lacking('inputs without special tokens', true),
  input_type: lacking('prompts for kinds of input'),
  task: lacking('adapters for tasks'),
  task_type: lacking('adapters for tasks'),
  instruction: lacking('instructions to put before the input', ''),
  late_chunking: lacking('late chunking', false),
  return_multivector: named('/embed_all', false),
  embedding_type: named('encoding_format', 'float'),
  output_dimension: named('dimensions'),
  output_dtype: lacking('embeddings of other types', 'float'),
  embed_dtype: lacking('embeddings of other types', 'float32'),
  endianness: lacking('another order of bytes', 'native', 'little'),
  messages: lacking('embeddings of conversations'),
  rank_fields: lacking('rankings by other fields', ['text']),
  max_chunks_per_doc: lacking('documents in chunks'),
  max_tokens_per_doc: named('truncate_prompt_tokens'),
  mm_processor_kwargs: lacking('processors of images', {}),
  truncation: named('truncate_prompt_tokens'),
  truncate: named('truncate_prompt_tokens', 'NONE'),
};

/** The same of rankings, by text-embeddings-inference too. */
export const OTHER_RERANK_FIELDS: OtherFields = {
  ...without(OTHER_ENCODER_FIELDS, 'instruction'),
  ...ofOtherRoutes({ texts: 'documents' }),
  raw_scores: lacking('scores without activation', false),
  return_text: named('return_documents', false),
};

/** The same of scores, whose texts vLLM has by several names. */
export const OTHER_SCORE_FIELDS: OtherFields = {
  ...without(OTHER_ENCODER_FIELDS, 'instruction'),
  ...ofOtherRoutes({
    queries: 'text_1',
    data_1: 'text_1',
    documents: 'text_2',
    items: 'text_2',
    data_2: 'text_2',
  }),
};

/** Fields of the other APIs' embeddings in a request of Cohere's. */
export const OTHER_COHERE_EMBED_FIELDS: OtherFields = {
  ...without(OTHER_ENCODER_FIELDS, 'embedding_types input_type output_dimension truncate priority'),
  ...ofOtherRoutes({
    input: 'texts',
    dimensions: 'output_dimension',
    task: 'input_type',
    task_type: 'input_type',
    truncate_prompt_tokens: 'max_tokens',
  }),
  encoding_format: named('embedding_types', 'float'),
  embedding_type: named('embedding_types', 'float'),
  output_dtype: named('embedding_types', 'float'),
  truncation: named('truncate', true),
  max_tokens_per_doc: named('max_tokens'),
  prompt_name: named('input_type'),
  normalized: lacking('embeddings of another length', true),
  images: lacking('embeddings of images', []),
};

/** The same for a ranking of Cohere's API. */
export const OTHER_COHERE_RERANK_FIELDS: OtherFields = {
  ...without(OTHER_RERANK_FIELDS, 'max_tokens_per_doc priority'),
  ...ofOtherRoutes({ top_k: 'top_n' }),
  truncation: named('max_tokens_per_doc', true),
  truncate: named('max_tokens_per_doc', true),
  truncate_prompt_tokens: named('max_tokens_per_doc'),
};

/** Fields of other routes that turn something on, or give it. */
const NOT_HERE = lacking('it on this route', false, 0, '', []);

function notHere(names: string): OtherFields {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, NOT_HERE]));
}

/** Fields of OpenAI's routes for text that the routes of neither Anthropic's nor Ollama's API have. */
const OPENAI_TEXT_FIELDS: OtherFields = {
  ...without(OTHER_GENERATION_FIELDS, 'thinking format stop_sequences'),
  ...withoutBearing(
    'stream_options user safety_identifier prompt_cache_key prompt_cache_retention store prediction verbosity',
  ),
  ...withoutBearing('timings_per_token return_progress reasoning'),
  ...ofOtherRoutes({ n: null, best_of: null, length_penalty: null }),
  ...notHere('use_beam_search early_stopping echo suffix input_suffix previous_response_id conversation'),
  ...notHere('return_token_ids return_tokens_as_token_ids include_stop_str_in_output add_special_tokens'),
  ...notHere('continue_final_message documents chat_template'),
  truncate_prompt_tokens: lacking('prompts that are cut on this route'),
  prompt_logprobs: lacking('log-probs of the prompt on this route'),
  skip_special_tokens: lacking('special tokens in the text on this route', true),
  add_generation_prompt: lacking('a choice of it on this route', true),
  include_reasoning: lacking('answers without their reasoning on this route', true),
  max_draft_len: lacking('it on this route'),
  modalities: lacking('any modality but text', ['text']),
  audio: lacking('audio'),
  web_search_options: lacking('web search'),
};

/** Fields of OpenAI's chats in a request of Anthropic's API. */
export const OTHER_ANTHROPIC_FIELDS: OtherFields = {
  ...without(OPENAI_TEXT_FIELDS, 'max_draft_len'),
  ...ofOtherRoutes({
    prompt: 'messages',
    input: 'messages',
    instructions: 'system',
    stop: 'stop_sequences',
    max_completion_tokens: 'max_tokens',
    max_output_tokens: 'max_tokens',
    response_format: 'output_config.format',
    reasoning_effort: 'output_config.effort',
    functions: 'tools',
    function_call: 'tool_choice',
    parallel_tool_calls: 'tool_choice.disable_parallel_tool_use',
  }),
  ...notHere('logprobs top_logprobs'),
  n_predict: named('max_tokens', -1),
  num_predict: named('max_tokens', -1),
  format: named('output_config.format', ''),
  thinking_token_budget: named('thinking.budget_tokens', -1),
  thinking_budget: named('thinking.budget_tokens', -1),
  thinking_budget_tokens: named('thinking.budget_tokens', -1),
};

/** Samplers by their names on OpenAI's routes, which are options of Ollama's. */
const OLLAMA_OPTIONS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    NAMED_PARAMETERS.flatMap(({ field, ollama }) =>
      ollama === null ? [] : [field, ollama].map((name) => [name, `options.${ollama}`]),
    ),
  ),
  ...Object.fromEntries(
    ['num_predict', 'n_predict', 'max_tokens', 'max_completion_tokens', 'max_output_tokens'].map((name) => [
      name,
      'options.num_predict',
    ]),
  ),
  stop: 'options.stop',
  stop_sequences: 'options.stop',
};

/** Parameters that Ollama's API lacks. One that only sets something for another has no bearing without it. */
const PARAMETERS_NOT_OF_OLLAMA: OtherFields = Object.fromEntries(
  NAMED_PARAMETERS.filter(({ ollama }) => ollama === null).map(({ field, parameter }) => {
    if (parameter.of !== undefined) return [field, NO_BEARING];
    return [field, parameter.isOffBelowZero ? lacking('it on this route', 0, -1) : NOT_HERE];
  }),
);

/** What the engine can do besides, as OpenAI's routes ask for it. */
const NOT_OF_OLLAMA: OtherFields = {
  ...PARAMETERS_NOT_OF_OLLAMA,
  ...notHere('stop_token_ids ignore_eos allowed_token_ids bad_words'),
  logit_bias: lacking('it on this route', {}),
  cache_prompt: lacking('prompts outside of the cache on this route', true),
  cache_salt: lacking('it on this route'),
  time_limit_ms: lacking('it on this route'),
  // Breakers set something for a penalty that is refused where it is on.
  ...withoutBearing('dry_sequence_breakers priority metadata service_tier guided_decoding_backend'),
};

/** Fields of OpenAI's chats, and options of Ollama's own, at the top of a request of Ollama's API. */
const OTHER_OLLAMA_FIELDS: OtherFields = {
  ...without(OPENAI_TEXT_FIELDS, 'options keep_alive'),
  ...NOT_OF_OLLAMA,
  ...ofOtherRoutes({
    ...OLLAMA_OPTIONS,
    response_format: 'format',
    guided_json: 'format',
    guided_json_object: 'format',
    json_schema: 'format',
    tool_choice: null,
    parallel_tool_calls: null,
    functions: null,
    function_call: null,
  }),
  ...notHere(
    'structured_outputs guided_regex guided_choice guided_grammar guided_whitespace_pattern grammar',
  ),
  ...namesElsewhere(({ ollama }) => ollama && `options.${ollama}`),
  reasoning_effort: named('think'),
  thinking: named('think', false),
  enable_thinking: named('think'),
  chat_template_kwargs: lacking('variables of the chat template on this route', {}),
  thinking_token_budget: lacking('a limit of thinking on this route', -1),
  thinking_budget: lacking('a limit of thinking on this route', -1),
  thinking_budget_tokens: lacking('a limit of thinking on this route', -1),
};

export const OTHER_OLLAMA_CHAT_FIELDS: OtherFields = {
  ...OTHER_OLLAMA_FIELDS,
  ...ofOtherRoutes({ prompt: 'messages', system: 'messages', input: 'messages', instructions: 'messages' }),
};

export const OTHER_OLLAMA_GENERATE_FIELDS: OtherFields = {
  ...without(OTHER_OLLAMA_FIELDS, 'suffix images'),
  ...ofOtherRoutes({ messages: 'prompt', input: 'prompt', instructions: 'system', tools: null }),
};

/** The same among Ollama's options, where clients write every sampler. */
export const OTHER_OLLAMA_OPTIONS: OtherFields = {
  ...NOT_OF_OLLAMA,
  max_tokens: named('num_predict', -1),
  n_predict: named('num_predict', -1),
  ...namesElsewhere(({ ollama }) => ollama),
  ...Object.fromEntries(
    NAMED_PARAMETERS.filter(({ field, ollama }) => ollama !== null && ollama !== field).map(
      ({ field, ollama, parameter }) => [field, named(ollama!, parameter.default)],
    ),
  ),
  format: lacking('it among the options', ''),
  grammar: lacking('it among the options', ''),
  json_schema: lacking('it among the options', ''),
};
