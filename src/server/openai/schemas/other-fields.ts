import type { OtherField, OtherFields } from './fields-node.js';

const NO_BEARING: OtherField = { why: '', harmless: 'any' };

/** A field that would change the answer. @param harmless values with which it would not, beside null */
function lacking(why: string, ...harmless: readonly unknown[]): OtherField {
  return { why: `this server does not have ${why}`, harmless };
}

/** A field that has another name here. */
function named(here: string, ...harmless: readonly unknown[]): OtherField {
  return { why: `use '${here}'`, harmless };
}

/** Fields that set something for a field that is off, or that concern only another server's own work. */
function withoutBearing(names: string): OtherFields {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, NO_BEARING]));
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
  mirostat_mode: lacking('Mirostat', 0),
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
  random_seed: named('seed'),
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
  ...withoutBearing('guided_decoding_backend cache_prompt timings_per_token return_progress'),
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

/** Fields of other servers' messages. */
export const OTHER_MESSAGE_FIELDS: OtherFields = {
  ...withoutBearing('id status weight annotations cache_control'),
  images: lacking('images', []),
  videos: lacking('videos', []),
  audio: lacking('audio'),
  prefix: named('continue_final_message', false),
  partial: named('continue_final_message', false),
};

/** Fields of other servers' parts of messages. Parts of other types are refused by their types. */
export const OTHER_PART_FIELDS: OtherFields = withoutBearing(
  'cache_control annotations id image_url input_audio file video_url audio_url',
);

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

/** Fields of OpenAI's chats in a request of Anthropic's API. */
export const OTHER_ANTHROPIC_FIELDS: OtherFields = {
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
    n: null,
    best_of: null,
    logprobs: null,
    top_logprobs: null,
    echo: null,
  }),
};

/** Fields of OpenAI's chats, and options of Ollama's own, at the top of a request of Ollama's API. */
const OTHER_OLLAMA_FIELDS: OtherFields = {
  ...ofOtherRoutes({
    temperature: 'options.temperature',
    top_p: 'options.top_p',
    top_k: 'options.top_k',
    min_p: 'options.min_p',
    seed: 'options.seed',
    stop: 'options.stop',
    num_predict: 'options.num_predict',
    max_tokens: 'options.num_predict',
    max_completion_tokens: 'options.num_predict',
    repeat_penalty: 'options.repeat_penalty',
    frequency_penalty: 'options.frequency_penalty',
    presence_penalty: 'options.presence_penalty',
    response_format: 'format',
    reasoning_effort: 'think',
    n: null,
    tool_choice: null,
  }),
};

export const OTHER_OLLAMA_CHAT_FIELDS: OtherFields = {
  ...OTHER_OLLAMA_FIELDS,
  ...ofOtherRoutes({ prompt: 'messages', system: 'messages' }),
};

export const OTHER_OLLAMA_GENERATE_FIELDS: OtherFields = {
  ...OTHER_OLLAMA_FIELDS,
  ...ofOtherRoutes({ messages: 'prompt', tools: null }),
};
