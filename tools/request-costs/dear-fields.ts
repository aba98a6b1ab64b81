import { shownBounds } from '../../callbacks/request/parameter.js';
import { NAMED_PARAMETERS } from '../../callbacks/request/parameters.js';
import {
  anyJson,
  anyObject,
  type JsonText,
  LONGEST,
  list,
  longTexts,
  longWords,
  manyValues,
  object,
  text,
} from './dear-values.js';

/** Sizes of the served model that the size of a request follows. */
export interface ModelSizes {
  vocabSize: number;
  maxSeqLen: number;
}

/** Fields of a body, as JSON. */
export type Fields = Readonly<Record<string, JsonText>>;
/** The most expensive values of a field: alone, or with the other fields that they need. */
export type DearField = (sizes: ModelSizes) => readonly (JsonText | Fields)[];

const one =
  (value: JsonText | Fields): DearField =>
  () => [value];
const harmless = (value: JsonText) => one(value);
const textField: DearField = () => longTexts;
const jsonField: DearField = () => anyJson;
const namedWeights = one(object(LONGEST / 20, (index) => `"fp_${index}":1`));

const dearStops: DearField = () => [
  list(64, (index) => text('a', 2000 + index)),
  list(64, (index) => `"${'ab'.repeat(60_000)}${index}"`),
  text('a', LONGEST),
];
const dearBadWords: DearField = () => [
  list(1024, (index) => `"${'a'.repeat(200)}${index}"`),
  list(1024, (index) => `"${'a '.repeat(7000)}${index}"`),
  list(1024, (index) => text('\u{1f9a2}', 8 + 2 * (index % 800))),
];
const dearBias: DearField = ({ vocabSize }) => [object(vocabSize, (token) => `"${token}":${token % 7}`)];
const textBias = list(1024, (index) => `["${'a '.repeat(120)}${index}",${index % 7}]`);
const breakers = list(16, (index) => `"${'aeiou\\n :".*'[index % 8]}${index < 8 ? '' : 'xyz'.repeat(12)}"`);
const wholeTokens = (count: number, first = 0) =>
  list(count, (index) => String(5 + ((first + index * 7) % 300)));

const dearPrompt: DearField = ({ maxSeqLen }) => {
  const most = maxSeqLen - 8;
  // Attention is quadratic: few prompts as long as a long context are a minute of one thread.
  const numLong = Math.min(256, Math.floor(4e8 / most ** 2));
  return [
    longTexts[0]!,
    text('Once upon a time ', 4 * most),
    ...longWords,
    wholeTokens(most),
    list(Math.min(256, 2 * numLong), (index) => `"${index} ${'once '.repeat(most / 2)}"`),
    list(256, () => text('x', LONGEST / 300)),
    list(numLong, (index) => wholeTokens(most, index)),
  ].map((value) => ({ prompt: value, max_tokens: '1' }));
};
const dearInputs: DearField = () => [
  longTexts[0]!,
  list(2048, (index) => `"${index} ${'word '.repeat(200)}"`),
  list(2048, () => text('x', LONGEST / 2100)),
  list(2000, () => wholeTokens(200)),
];

/** A file that is no picture, as large as a request's may be. */
const LARGEST_FILE = text('Qk1Q', 16e6 - 4);

const chatMessages: readonly JsonText[] = [
  `[{"role":"user","content":${text('a', LONGEST)}}]`,
  `[{"role":"user","content":${text('Once upon a time ', 4000)}}]`,
  list(4000, (index) => `{"role":"${index % 2 ? 'assistant' : 'user'}","content":"hi ${index}"}`),
  list(16_000, (index) => `{"role":"user","content":"${index}"}`),
  `[{"role":"user","content":${list(4000, () => `{"type":"text","text":"a"}`)}}]`,
  list(100, () => `{"role":"user","content":${list(1200, () => `{"type":"text","text":"a"}`)}}`),
  list(
    60,
    () =>
      `{"role":"assistant","content":null,"tool_calls":${list(1000, (index) => `{"id":"${index}","type":"function","function":{"name":"f","arguments":"{}"}}`)}}`,
  ),
  `[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":${JSON.stringify(`{"a":${list(200_000, () => '1')}}`)}}}]},{"role":"user","content":"a"}]`,
  `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,${LARGEST_FILE.slice(1)}}}]}]`,
  list(
    60,
    () =>
      `{"role":"user","content":${list(1000, () => '{"type":"image_url","image_url":"data:;base64,Qk1Q"}')}}`,
  ),
];
const items: readonly JsonText[] = [
  text('a', LONGEST),
  text('Once upon a time ', 4000),
  list(4000, (index) => `{"role":"user","content":"hi ${index}"}`),
  list(100, () => `{"role":"user","content":${list(1200, () => '{"type":"input_text","text":"a"}')}}`),
  list(4000, (index) => `{"type":"function_call","call_id":"${index}","name":"f","arguments":"{}"}`),
  `[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,${LARGEST_FILE.slice(1)}}]}]`,
  list(
    60,
    () =>
      `{"role":"user","content":${list(1000, () => '{"type":"input_image","image_url":"data:;base64,Qk1Q"}')}}`,
  ),
  list(
    2000,
    (index) =>
      `{"type":"function_call","call_id":"${index}","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"${index}","output":"1"}`,
  ),
];

/** Items of compactions: one of many messages, and many of one. */
const sealed = (lengths: string, content: string) =>
  `skein-compaction1:${Buffer.from(`1 1 | ${lengths} | \n${content}`).toString('base64')}`;
const compacted = list(
  64,
  (index) =>
    `{"type":"compaction","encrypted_content":"${sealed(`${'u1 '.repeat(250)}u${index}`, 'a'.repeat(251 + index))}"}`,
);
/** Tools in namespaces, as many as there may be. */
const namespaces = list(
  2,
  (index) =>
    `{"type":"namespace","name":"n${index}","tools":${list(255, (inner) => `{"type":"function","name":"f${inner}","parameters":{"type":"object"}}`)}}`,
);

/** Templates of a request: long, without end, quadratic where they are searched for their words. */
const templates: readonly JsonText[] = [
  text('{% if messages %}', 65_000),
  text('{{ messages', 65_000),
  text('{% for a in range(100000) %}{% for b in range(100000) %}', 112),
  JSON.stringify("{% for i in range(99999) %}{% if 'x' in (messages | string) %}{% endif %}{% endfor %}"),
  JSON.stringify(
    "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = ns.l + ['x' * 9999 ~ i] %}{% endfor %}",
  ),
];
const bigSchema = object(2, (half) =>
  half === 0
    ? '"type":"object"'
    : `"properties":${object(4000, (index) => `"p${index}":{"type":"string","maxLength":${index}}`)}`,
);
const wideSchema = `{"enum":${list(4000, (index) => `"${'x'.repeat(1000)}${index}"`)}}`;
const deepSchema = `${'{"type":"array","items":'.repeat(90)}{"type":"string"}${'}'.repeat(90)}`;
const nestedSchema = `{"type":"object","properties":${object(400, (index) => `"p${index}":{"anyOf":${list(10, (inner) => `{"type":"array","minItems":50,"items":{"const":"${inner}"}}`)}}`)}}`;
const schemas: readonly JsonText[] = [bigSchema, wideSchema, deepSchema, nestedSchema];
const regexes: readonly JsonText[] = [
  '"(a|b|ab)*c{1,500}"',
  text('(ab?)*', 12_000),
  '"(((a{0,99}){0,99}){0,99})"',
  text('a', LONGEST),
  JSON.stringify(`(${Array.from({ length: 20_000 }, (_, index) => `w${index}`).join('|')})`),
];
const choices: readonly JsonText[] = [
  list(4000, (index) => `"${'choice '.repeat(500)}${index}"`),
  list(4000, (index) => `"${index}"`),
];
const grammars: readonly JsonText[] = [
  text('a', LONGEST),
  JSON.stringify(
    Array.from({ length: 5000 }, (_, index) => `r${index} ::= "x${index}" r${index + 1} | "y"`)
      .join('\n')
      .replace('r0', 'root')
      .concat('\nr5000 ::= "z"'),
  ),
];
const spacePatterns: readonly JsonText[] = [
  '"[ ]{0,500}"',
  '"((( {0,99}){0,99}){0,99})"',
  text('( |\\\\n)*', 12_000),
  text(' ', LONGEST / 64),
];
const tools = (wrap: (inner: string) => string): readonly JsonText[] => [
  list(512, (index) =>
    wrap(
      `"name":"f${index}","description":"d","parameters":{"type":"object","properties":{"a":{"enum":${list(200, (value) => `"${value}"`)}}}}`,
    ),
  ),
  list(1, () => wrap(`"name":"f","parameters":${bigSchema}`)),
  list(512, (index) => wrap(`"name":"f${index}","description":${text('a', 30_000)}`)),
];
const chatTools = tools((inner) => `{"type":"function","function":{${inner}}}`);
const responseTools = tools((inner) => `{"type":"function",${inner}}`);
const chosenTool = `"required"`;
const dearFormats: readonly JsonText[] = [
  ...schemas.map((schema) => `{"type":"json_schema","json_schema":{"name":"x","schema":${schema}}}`),
  ...schemas.map((schema) => `{"type":"json_object","schema":${schema}}`),
  `{"type":"json_schema","json_schema":{"name":${longTexts[0]},"schema":{}}}`,
];

/** Parameters whose greatest value is as expensive as any other. */
const parameters: Readonly<Record<string, DearField>> = Object.fromEntries(
  NAMED_PARAMETERS.map(({ field, parameter }) => [
    field,
    harmless(String(shownBounds(parameter)?.[1] ?? true)),
  ]),
);

/** Fields of every route that generates. */
const sampling: Readonly<Record<string, DearField>> = {
  ...parameters,
  top_p: harmless('0.9999'),
  min_p: harmless('0.000001'),
  repetition_penalty: harmless('1.5'),
  repeat_penalty: harmless('1.5'),
  repeat_last_n: one({ repetition_penalty: '1.5', repeat_last_n: '2147483647' }),
  no_repeat_ngram_size: () => ['2', '400'],
  logit_bias: (sizes) => [...dearBias(sizes), textBias],
  typical_p: harmless('0.999999'),
  xtc_probability: one({ xtc_probability: '1', xtc_threshold: '0' }),
  xtc_threshold: one({ xtc_probability: '1', xtc_threshold: '0.000001' }),
  dynatemp_exponent: one({ dynatemp_range: '1', dynatemp_exponent: '100' }),
  temperature_last: one({ temperature_last: 'true', top_p: '0.999999' }),
  mirostat: () => ['1', '2'],
  mirostat_tau: one({ mirostat: '1', mirostat_tau: '100' }),
  mirostat_eta: one({ mirostat: '2', mirostat_eta: '10' }),
  dry_base: one({ dry_multiplier: '1', dry_base: '1000' }),
  dry_allowed_length: one({ dry_multiplier: '1', dry_allowed_length: '1' }),
  dry_penalty_last_n: one({ dry_multiplier: '1', dry_penalty_last_n: '-1' }),
  dry_sequence_breakers: one({ dry_multiplier: '1', dry_sequence_breakers: breakers }),
  allowed_token_ids: ({ vocabSize }) => [list(vocabSize, String), list(2_000_000, () => '7')],
  bad_words: dearBadWords,
  seed: harmless('9007199254740991'),
  min_tokens: harmless('1'),
  stop: dearStops,
  stop_token_ids: one(list(64, String)),
  ignore_eos: harmless('true'),
  include_stop_str_in_output: harmless('true'),
  skip_special_tokens: harmless('false'),
  priority: harmless('1'),
  cache_salt: textField,
  time_limit_ms: harmless('2147483647'),
  max_draft_len: harmless('2147483647'),
  user: jsonField,
  metadata: jsonField,
  safety_identifier: jsonField,
  prompt_cache_key: jsonField,
  prompt_cache_retention: jsonField,
  service_tier: jsonField,
  stream: harmless('true'),
  structured_outputs: () => [
    ...schemas.map((schema) => `{"json":${schema}}`),
    ...regexes.map((regex) => `{"regex":${regex}}`),
    ...choices.map((choice) => `{"choice":${choice}}`),
    ...grammars.map((grammar) => `{"grammar":${grammar}}`),
    ...spacePatterns.map((pattern) => `{"json":${bigSchema},"whitespace_pattern":${pattern}}`),
    `{"json":${text('[', LONGEST)}}`,
    `{"structural_tag":{"type":"structural_tag","format":{"type":"or","elements":${list(4000, (index) => `{"type":"const_string","value":"${index}"}`)}}}}`,
  ],
};

const reasoning: Readonly<Record<string, DearField>> = {
  include_reasoning: harmless('false'),
  thinking_token_budget: harmless('0'),
  thinking_budget: harmless('2147483647'),
  thinking_budget_tokens: harmless('1'),
};

/** The form of an answer, by names of its own. */
const forms: Readonly<Record<string, DearField>> = {
  guided_json: () => schemas,
  guided_regex: () => regexes,
  guided_choice: () => choices,
  guided_grammar: () => grammars,
  guided_json_object: harmless('true'),
  guided_decoding_backend: jsonField,
  guided_whitespace_pattern: () =>
    spacePatterns.map((guided_whitespace_pattern) => ({
      guided_json: bigSchema,
      guided_whitespace_pattern,
    })),
  grammar: () => grammars,
  json_schema: () => schemas,
};

const common: Readonly<Record<string, DearField>> = {
  ...sampling,
  model: harmless('null'),
  max_tokens: harmless('16'),
  n_predict: one({ max_tokens: 'null', n_predict: '16' }),
  add_special_tokens: harmless('true'),
  stream_options: one({
    stream: 'true',
    stream_options: '{"include_usage":true,"continuous_usage_stats":true}',
  }),
  n: () => ['128', { n: '128', stream: 'true' }],
  best_of: one({ n: '1', best_of: '128' }),
  use_beam_search: one({ use_beam_search: 'true', n: '4' }),
  length_penalty: one({ use_beam_search: 'true', n: '4', length_penalty: '100' }),
  early_stopping: one({ use_beam_search: 'true', n: '4', early_stopping: '"never"' }),
  prompt_logprobs: harmless('20'),
  return_token_ids: harmless('true'),
  ...forms,
  return_tokens_as_token_ids: harmless('true'),
  truncate_prompt_tokens: harmless('-1'),
  cache_prompt: harmless('false'),
  timings_per_token: one({ timings_per_token: 'true', stream: 'true' }),
  return_progress: one({ return_progress: 'true', stream: 'true' }),
};

const wholePromptOf = ({ maxSeqLen }: ModelSizes) => wholeTokens(maxSeqLen - 20);
const completions: Readonly<Record<string, DearField>> = {
  ...common,
  prompt: dearPrompt,
  echo: (sizes) => [{ echo: 'true', prompt: wholePromptOf(sizes), max_tokens: '1' }],
  logprobs: (sizes) => [
    '20',
    { logprobs: '20', echo: 'true', prompt: wholePromptOf(sizes), max_tokens: '0' },
    { logprobs: '20', n: '128', max_tokens: '64', stream: 'true' },
    { logprobs: '20', n: '128', max_tokens: '64' },
    { logprobs: '20', max_tokens: '900', ignore_eos: 'true' },
  ],
  prompt_logprobs: (sizes) => [{ prompt_logprobs: '20', prompt: wholePromptOf(sizes), max_tokens: '1' }],
  return_token_ids: (sizes) => [{ return_token_ids: 'true', prompt: wholePromptOf(sizes), n: '128' }],
  n: (sizes) => [
    '128',
    { n: '128', stream: 'true' },
    { n: '128', prompt: wholePromptOf(sizes), no_repeat_ngram_size: '400' },
    { n: '128', logit_bias: dearBias(sizes)[0] as string },
    { n: '128', repetition_penalty: '1.5', prompt: wholePromptOf(sizes) },
  ],
  no_repeat_ngram_size: ({ maxSeqLen }) => {
    const prompt = list(maxSeqLen - 40, () => '9');
    return ['2', String(maxSeqLen / 2)].map((size) => ({ no_repeat_ngram_size: size, prompt, n: '64' }));
  },
  bad_words: (sizes) => [
    ...dearBadWords(sizes),
    {
      bad_words: list(1024, (index) => text(' a', 400 + 2 * (index % 100))),
      n: '64',
      prompt: text(' a', 1600),
    },
  ],
  suffix: () => longTexts,
  response_format: () => dearFormats,
};

const chat: Readonly<Record<string, DearField>> = {
  ...common,
  messages: () => chatMessages.map((messages) => ({ messages, max_completion_tokens: '1' })),
  max_completion_tokens: harmless('16'),
  logprobs: harmless('true'),
  top_logprobs: () => [
    { logprobs: 'true', top_logprobs: '20' },
    { logprobs: 'true', top_logprobs: '20', n: '128', max_tokens: '32', stream: 'true' },
    { logprobs: 'true', top_logprobs: '20', n: '128', max_tokens: '64' },
    { logprobs: 'true', top_logprobs: '20', max_tokens: '900', ignore_eos: 'true' },
  ],
  add_generation_prompt: harmless('false'),
  continue_final_message: one({
    continue_final_message: 'true',
    messages: `[{"role":"user","content":"a"},{"role":"assistant","content":${text('a', LONGEST / 64)}}]`,
  }),
  echo: one({ echo: 'true', messages: `[{"role":"assistant","content":${text('a', LONGEST / 64)}}]` }),
  documents: () => [
    list(4000, (index) => `{"title":"${index}","text":"a"}`),
    `[{"text":${text('a', LONGEST)}}]`,
  ],
  ...reasoning,
  chat_template: () => templates,
  chat_template_kwargs: () => anyObject,
  tools: () => chatTools,
  tool_choice: one({ tools: chatTools[0]!, tool_choice: chosenTool }),
  parallel_tool_calls: one({ tools: chatTools[0]!, parallel_tool_calls: 'false', tool_choice: chosenTool }),
  prediction: jsonField,
  functions: () => tools((inner) => `{${inner}}`),
  function_call: one({ functions: '[{"name":"f0"}]', function_call: '{"name":"f0"}' }),
  response_format: () => dearFormats,
  modalities: harmless('["text"]'),
  audio: harmless('null'),
  reasoning_effort: harmless('"high"'),
  verbosity: jsonField,
  web_search_options: harmless('null'),
  store: jsonField,
};

const responses: Readonly<Record<string, DearField>> = {
  ...sampling,
  ...reasoning,
  model: harmless('null'),
  input: () => items.map((input) => ({ input, max_output_tokens: '1' })),
  instructions: textField,
  previous_response_id: harmless('null'),
  max_output_tokens: harmless('16'),
  stream_options: one({ stream: 'true', stream_options: `{"include_obfuscation":${manyValues[0]}}` }),
  store: harmless('true'),
  metadata: one(object(16, (index) => `"${index}":${text('a', 512)}`)),
  text: () => schemas.map((schema) => `{"format":{"type":"json_schema","name":"x","schema":${schema}}}`),
  tools: () => [...responseTools, namespaces],
  tool_choice: one({ tools: responseTools[0]!, tool_choice: chosenTool }),
  parallel_tool_calls: one({ tools: responseTools[0]!, parallel_tool_calls: 'false' }),
  reasoning: harmless('{"effort":"high"}'),
  include: one(list(4000, () => '"message.output_text.logprobs"')),
  top_logprobs: () => [
    { include: '["message.output_text.logprobs"]', top_logprobs: '20' },
    {
      include: '["message.output_text.logprobs"]',
      top_logprobs: '20',
      max_output_tokens: '900',
      ignore_eos: 'true',
    },
    {
      include: '["message.output_text.logprobs"]',
      top_logprobs: '20',
      max_output_tokens: '900',
      ignore_eos: 'true',
      stream: 'true',
    },
  ],
  truncation: () => items.map((input) => ({ input, truncation: '"auto"', max_output_tokens: '1' })),
  chat_template_kwargs: () => anyObject,
  user: textField,
  safety_identifier: textField,
  prompt_cache_key: textField,
  client_metadata: jsonField,
  prompt_cache_retention: jsonField,
  service_tier: jsonField,
  background: harmless('true'),
  conversation: harmless('null'),
  prompt_cache_options: jsonField,
  prompt: harmless('null'),
  max_tool_calls: harmless('8'),
  context_management: () =>
    items.map((input) => ({
      input,
      context_management: '[{"type":"compaction","compact_threshold":1}]',
      max_output_tokens: '1',
    })),
  moderation: harmless('null'),
};

const inputTokens: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  input: () => items,
  instructions: textField,
  previous_response_id: harmless('null'),
  text: harmless('{"format":{"type":"json_object"}}'),
  tools: () => responseTools,
  tool_choice: one({ tools: responseTools[0]!, tool_choice: chosenTool }),
  parallel_tool_calls: one({ tools: responseTools[0]!, parallel_tool_calls: 'false' }),
  reasoning: harmless('{"effort":"high"}'),
  truncation: () => items.map((input) => ({ input, truncation: '"auto"' })),
  max_output_tokens: harmless('16'),
  conversation: harmless('null'),
  chat_template_kwargs: () => anyObject,
};

const compaction: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  input: () => [...items, compacted],
  instructions: textField,
  previous_response_id: harmless('null'),
  tools: () => [...responseTools, namespaces],
  parallel_tool_calls: harmless('false'),
  reasoning: harmless('{"effort":"high"}'),
  text: harmless('{"format":{"type":"json_object"}}'),
  chat_template_kwargs: () => anyObject,
  prompt_cache_key: textField,
  prompt_cache_retention: jsonField,
  prompt_cache_options: jsonField,
  service_tier: jsonField,
  client_metadata: jsonField,
  priority: harmless('1'),
  cache_salt: one(text('a', 1024)),
  time_limit_ms: harmless('2147483647'),
};

const dearMetadata = object(16, (index) => `"${index}":${text('a', 512)}`);
const conversations: Readonly<Record<string, DearField>> = {
  items: () => items.filter((value) => String(value).startsWith('[')),
  metadata: one(dearMetadata),
};

const anthropicImage = (data: JsonText) =>
  `{"type":"image","source":{"type":"base64","media_type":"image/png","data":${data}}}`;
const anthropicBlocks: readonly JsonText[] = [
  `[{"role":"user","content":[${anthropicImage(LARGEST_FILE)}]}]`,
  list(60, () => `{"role":"user","content":${list(500, () => anthropicImage('"Qk1Q"'))}}`),
  `[{"role":"user","content":${text('a', LONGEST)}}]`,
  `[{"role":"user","content":${text('Once upon a time ', 4000)}}]`,
  list(4000, (index) => `{"role":"${index % 2 ? 'assistant' : 'user'}","content":"hi ${index}"}`),
  list(8000, (index) => `{"role":"user","content":"${index}"}`),
  list(100, () => `{"role":"user","content":${list(1200, () => '{"type":"text","text":"a"}')}}`),
  `[{"role":"assistant","content":${list(2000, (index) => `{"type":"tool_use","id":"${index}","name":"f","input":{"a":1}}`)}},{"role":"user","content":${list(2000, (index) => `{"type":"tool_result","tool_use_id":"${index}","content":"1"}`)}}]`,
  `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":${list(4000, () => '1')}}}]},{"role":"user","content":"a"}]`,
];
const anthropicTools = [
  ...tools((inner) => `{${inner.replace('"parameters"', '"input_schema"')}}`),
  list(512, (index) => `{"type":"t${index}${'x'.repeat(9000)}","name":"f"}`),
];
const anthropicFormats = schemas.map((schema) => `{"type":"json_schema","schema":${schema}}`);
const anthropicPrompt: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  messages: () => anthropicBlocks.map((messages) => ({ messages })),
  system: () => [...longTexts, list(4000, () => '{"type":"text","text":"a"}')],
  tools: () => anthropicTools,
  tool_choice: one({ tools: anthropicTools[0]!, tool_choice: '{"type":"any"}' }),
  thinking: harmless('{"type":"enabled","budget_tokens":1024}'),
  output_config: () => anthropicFormats.map((format) => `{"format":${format}}`),
  output_format: () => anthropicFormats,
  chat_template_kwargs: () => anyObject,
  cache_control: jsonField,
  context_management: jsonField,
  mcp_servers: harmless('[]'),
  speed: jsonField,
  user_profile_id: jsonField,
  workspace_id: jsonField,
};
const anthropic: Readonly<Record<string, DearField>> = {
  ...forms,
  cache_prompt: harmless('false'),
  ...sampling,
  ...anthropicPrompt,
  max_tokens: harmless('2147483647'),
  stop_sequences: dearStops,
  inference_geo: jsonField,
  diagnostics: jsonField,
  container: harmless('null'),
  thread: harmless('{"type":"create"}'),
};

const ollamaOptions = one({
  options: `{"num_predict":16,"temperature":1,"top_k":0,"top_p":1,"typical_p":0.999999,"repeat_penalty":1.5,"repeat_last_n":-1,"stop":${list(64, (index) => text('a', 2000 + index))}}`,
});
const ollamaFormats = ['"json"', ...schemas];
const ollamaText: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  options: (sizes) => [...ollamaOptions(sizes), { options: '{"num_predict":16,"mirostat":1}' }],
  format: () => ollamaFormats,
  think: harmless('false'),
  stream: harmless('true'),
  keep_alive: harmless('"5m"'),
  shift: harmless('false'),
  logprobs: harmless('true'),
  top_logprobs: one({ logprobs: 'true', top_logprobs: '20' }),
};
const ollamaChat: Readonly<Record<string, DearField>> = {
  ...ollamaText,
  messages: () => [
    ...chatMessages.slice(0, 4),
    list(
      60,
      () =>
        `{"role":"assistant","tool_calls":${list(1000, () => '{"function":{"name":"f","arguments":{}}}')}}`,
    ),
  ],
  tools: () => chatTools,
  // Messages are left out until the rest fits: of many short ones, and of a few long ones.
  truncate: () => [
    { messages: list(4000, () => '{"role":"user","content":"Once upon"}'), truncate: 'true' },
    {
      messages: list(60, () => `{"role":"user","content":${text('word ', LONGEST / 80)}}`),
      truncate: 'true',
    },
  ],
};
const ollamaGenerate: Readonly<Record<string, DearField>> = {
  ...ollamaText,
  prompt: () => [...longTexts, ...longWords],
  suffix: one({ suffix: text('a', LONGEST) }),
  system: textField,
  template: () => [text('{{ .Prompt }}', 65_000), text('{{ if .Prompt }}', 65_000)],
  context: ({ maxSeqLen }) => [wholeTokens(maxSeqLen / 2), list(490_000, () => '7')],
  raw: harmless('true'),
  images: () => [`[${LARGEST_FILE}]`, list(1000, () => '"Qk1Q"')],
  truncate: harmless('true'),
};
const ollamaEmbed: Readonly<Record<string, DearField>> = {
  model: harmless('"tiny-bert-mean"'),
  input: () => [longTexts[0]!, list(2048, (index) => `"${index} ${'word '.repeat(200)}"`)],
  prompt: () => [text('word ', LONGEST)],
  truncate: harmless('true'),
  dimensions: harmless('null'),
  options: () => anyObject,
  keep_alive: harmless('"5m"'),
};
const ollamaNames: Readonly<Record<string, DearField>> = {
  model: textField,
  name: textField,
  verbose: harmless('true'),
  system: textField,
  template: textField,
  options: () => anyObject,
  insecure: harmless('true'),
  username: textField,
  password: textField,
  stream: harmless('false'),
};

/** Texts as long as the model for tokens takes, of which each token becomes a vector. */
const TEXTS_OF_TOKENS = list(8, () => text('x y ', 8000));

const tokenOutputs: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  inputs: (sizes) =>
    [TEXTS_OF_TOKENS, ...dearInputs(sizes)].map((inputs) => ({ inputs: inputs as string, truncate: 'true' })),
  truncate: harmless('true'),
  truncation_direction: one({ inputs: text('x', LONGEST), truncate: 'true', truncation_direction: '"left"' }),
  prompt_name: harmless('null'),
};

const encoders: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  truncate_prompt_tokens: harmless('-1'),
  user: jsonField,
  input: (sizes) =>
    [...dearInputs(sizes), list(2048, (index) => `{"text":"${index}"}`)].map((input) => ({
      input: input as string,
      truncate_prompt_tokens: '-1',
    })),
  encoding_format: one({ input: list(2048, (index) => `"${index}"`), encoding_format: '"float"' }),
  dimensions: harmless('null'),
  output_dimension: harmless('null'),
  output_dtype: one({ input: list(2048, (index) => `"${index}"`), output_dtype: '"int8"' }),
  truncation: harmless('true'),
  truncate: harmless('true'),
  truncation_side: one({
    input: text('x', LONGEST),
    truncate_prompt_tokens: '-1',
    truncation_side: '"left"',
  }),
  input_type: harmless('"query"'),
  prompt_name: harmless('null'),
  task: harmless('"retrieval.query"'),
  embedding_type: one({ input: list(2048, (index) => `"${index}"`), embedding_type: '"base64"' }),
  normalized: one({ input: list(2048, (index) => `"${index}"`), normalized: 'true' }),
  normalize: harmless('true'),
  query: () => longTexts.map((query) => ({ query, truncate_prompt_tokens: '-1' })),
  documents: () =>
    [
      list(2048, (index) => `"${index}"`),
      list(2000, () => `{"text":${text('word ', 4000)}}`),
      list(2, () => text('x', LONGEST / 2)),
    ].map((documents) => ({ documents, truncate_prompt_tokens: '-1' })),
  top_n: harmless('1'),
  top_k: harmless('1'),
  instruction: harmless('null'),
  instruct: harmless('null'),
  return_documents: one({
    documents: list(2000, () => text('word ', 4000)),
    return_documents: 'true',
    truncate_prompt_tokens: '-1',
  }),
  text_1: () => [{ text_1: text('word ', LONGEST), truncate_prompt_tokens: '-1' }],
  text_2: () => [{ text_2: list(2048, () => text('word ', 5000)), truncate_prompt_tokens: '-1' }],
};

/** Fields of a chat, for a route that takes a text or a conversation. */
function ofConversation(names: string): Record<string, DearField> {
  const conversation = { prompt: 'null', messages: '[{"role":"user","content":"a"}]' };
  const fieldOf = (name: string): DearField => {
    const valuesOf = chat[name]!;
    return (sizes) =>
      valuesOf(sizes).map((value) => ({
        ...conversation,
        ...(typeof value === 'string' ? { [name]: value } : value),
      }));
  };
  return Object.fromEntries(names.split(' ').map((name) => [name, fieldOf(name)]));
}

const tokenizing: Readonly<Record<string, DearField>> = {
  model: harmless('null'),
  prompt: () => [...longTexts, ...longWords],
  messages: () => chatMessages.map((messages) => ({ messages, prompt: 'null' })),
  add_special_tokens: harmless('true'),
  return_token_strs: one({ prompt: text('Once upon a time ', 4000), return_token_strs: 'true' }),
  ...ofConversation(
    'add_generation_prompt continue_final_message chat_template chat_template_kwargs documents',
  ),
  ...ofConversation('tools tool_choice parallel_tool_calls functions function_call reasoning_effort'),
  ...ofConversation('truncate_prompt_tokens max_completion_tokens max_tokens n_predict'),
  tokens: () => [list(490_000, (index) => String(index % 300)), list(490_000, () => '7')],
};

const adapters: Readonly<Record<string, DearField>> = {
  lora_name: textField,
  lora_path: textField,
  load_inplace: harmless('true'),
  is_3d_lora_weight: harmless('false'),
  base_model_name: textField,
  lora_int_id: harmless('1'),
};

/** Of a model without tokens for infilling, as the demo is, the request ends where that is found. */
const infill: Readonly<Record<string, DearField>> = {
  ...common,
  prompt: textField,
  input_prefix: textField,
  input_suffix: textField,
  input_extra: () => [
    list(256, () => `{"filename":"a","text":${text('word ', LONGEST / 300)}}`),
    `[{"text":${text('a', LONGEST)}}]`,
  ],
  n_predict: harmless('2'),
  cache_prompt: harmless('false'),
  return_tokens: harmless('true'),
  response_fields: one(list(64, () => '"timings/prompt_n"')),
  samplers: jsonField,
  n_indent: jsonField,
  t_max_prompt_ms: jsonField,
  t_max_predict_ms: jsonField,
  id_slot: jsonField,
};

const batches: Readonly<Record<string, DearField>> = {
  input_file_id: textField,
  endpoint: textField,
  completion_window: textField,
  metadata: jsonField,
  output_expires_after: jsonField,
};

/**
 * A route with a body: what is requested where nothing is expensive, and what is expensive in each of its
 * fields.
 */
export interface DearRoute {
  plain: Fields;
  fields: Readonly<Record<string, DearField>>;
}

/** Every route that takes a body, and every field of it: the test fails by the name of one that is not here. */
export const DEAR_ROUTES: Readonly<Record<string, DearRoute>> = {
  '/v1/completions': { plain: { prompt: '"Once"', max_tokens: '2' }, fields: completions },
  '/v1/chat/completions': {
    plain: { messages: '[{"role":"user","content":"Once"}]', max_tokens: '2' },
    fields: chat,
  },
  '/v1/responses': { plain: { input: '"Once"', max_output_tokens: '2' }, fields: responses },
  '/v1/messages': {
    plain: { messages: '[{"role":"user","content":"Once"}]', max_tokens: '2' },
    fields: anthropic,
  },
  '/v1/messages/count_tokens': {
    plain: { messages: '[{"role":"user","content":"Once"}]' },
    fields: anthropicPrompt,
  },
  '/v1/responses/compact': { plain: { input: '"Once"' }, fields: compaction },
  '/v1/conversations': { plain: {}, fields: conversations },
  '/v1/conversations/{id}': { plain: { metadata: '{}' }, fields: conversations },
  '/v1/conversations/{id}/items': {
    plain: { items: '[{"role":"user","content":"Once"}]' },
    fields: conversations,
  },
  '/v1/responses/input_tokens': { plain: { input: '"Once"' }, fields: inputTokens },
  '/infill': { plain: { input_prefix: '"Once"', input_suffix: '"time"' }, fields: infill },
  '/invocations': { plain: { prompt: '"Once"', max_tokens: '2' }, fields: {} },
  '/v1/batches': {
    plain: {
      input_file_id: '"file-none"',
      endpoint: '"/v1/completions"',
      completion_window: '"24h"',
    },
    fields: batches,
  },
  '/v1/embeddings': { plain: { input: '"Once"' }, fields: encoders },
  '/v1/rerank': { plain: { query: '"Once"', documents: '["upon"]' }, fields: encoders },
  '/v2/embed': {
    plain: { texts: '["Once"]' },
    fields: {
      ...encoders,
      texts: () =>
        [
          list(2048, (index) => `"${index}"`),
          list(2000, () => text('word ', 4000)),
          list(2, () => text('x', LONGEST / 2)),
        ].map((texts) => ({ texts })),
      inputs: one({
        texts: 'null',
        inputs: list(2048, (index) => `{"content":[{"type":"text","text":"${index}"}]}`),
      }),
      input_type: harmless('"search_query"'),
      embedding_types: one({
        texts: list(2048, (index) => `"${index}"`),
        embedding_types: '["float","int8","uint8","binary","ubinary","base64"]',
      }),
      truncate: one({ texts: list(2, () => text('x', LONGEST / 2)), truncate: '"START"' }),
      max_tokens: harmless('1'),
      priority: jsonField,
    },
  },
  '/v2/rerank': {
    plain: { query: '"Once"', documents: '["upon"]' },
    fields: { ...encoders, max_tokens_per_doc: harmless('1'), priority: jsonField },
  },
  '/v1/score': { plain: { text_1: '"Once"', text_2: '"upon"' }, fields: encoders },
  '/tokenize': { plain: { prompt: '"Once"' }, fields: tokenizing },
  '/pooling': {
    plain: { input: '"Once"' },
    fields: {
      ...encoders,
      task: () =>
        ['token_embed', 'token_classify', 'embed'].map((task) => ({
          input: TEXTS_OF_TOKENS,
          truncate_prompt_tokens: '-1',
          task: `"${task}"`,
        })),
      use_activation: one({ input: list(2048, (index) => `"${index}"`), use_activation: 'true' }),
      activation: harmless('true'),
    },
  },
  '/classify': {
    plain: { input: '"Once"' },
    fields: {
      ...encoders,
      use_activation: one({ input: list(2048, (index) => `"${index}"`), use_activation: 'true' }),
      activation: harmless('false'),
    },
  },
  '/predict': {
    plain: { inputs: '"Once"' },
    fields: {
      model: harmless('null'),
      inputs: () =>
        [
          list(2048, (index) => `["${index}","x"]`),
          list(2000, () => `[${text('word ', 4000)}]`),
          `[${list(2, () => text('x', LONGEST / 2))}]`,
        ].map((inputs) => ({ inputs, truncate: 'true' })),
      truncate: harmless('true'),
      truncation_direction: one({
        inputs: text('x', LONGEST),
        truncate: 'true',
        truncation_direction: '"left"',
      }),
      raw_scores: harmless('true'),
    },
  },
  '/embed_sparse': { plain: { inputs: '"Once"' }, fields: tokenOutputs },
  '/embed_all': { plain: { inputs: '"Once"' }, fields: tokenOutputs },
  '/apply-template': {
    plain: { messages: '[{"role":"user","content":"Once"}]' },
    fields: chat,
  },
  '/v1/completions/render': { plain: { prompt: '"Once"' }, fields: completions },
  '/v1/chat/completions/render': {
    plain: { messages: '[{"role":"user","content":"Once"}]' },
    fields: chat,
  },
  '/detokenize': { plain: { tokens: '[7]' }, fields: tokenizing },
  '/api/chat': {
    plain: { messages: '[{"role":"user","content":"Once"}]', options: '{"num_predict":2}', stream: 'false' },
    fields: ollamaChat,
  },
  '/api/generate': {
    plain: { prompt: '"Once"', options: '{"num_predict":2}', stream: 'false' },
    fields: ollamaGenerate,
  },
  '/api/embed': { plain: { input: '"Once"' }, fields: ollamaEmbed },
  '/api/embeddings': { plain: { prompt: '"Once"' }, fields: ollamaEmbed },
  '/api/show': { plain: {}, fields: ollamaNames },
  '/api/pull': { plain: {}, fields: ollamaNames },
  '/v1/load_lora_adapter': {
    plain: { lora_name: '"x"', lora_path: '"tiny-bert-mean"' },
    fields: adapters,
  },
  '/pool_weights': {
    plain: { weights: '{"fp_a":1}' },
    fields: { weights: namedWeights },
  },
  '/catalogue/downloads': { plain: { repository: '"x/y"' }, fields: { repository: textField } },
  '/v1/unload_lora_adapter': { plain: { lora_name: '"x"' }, fields: adapters },
};
