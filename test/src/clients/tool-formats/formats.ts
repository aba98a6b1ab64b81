import type { ToolFormatName } from '../../../../src/generation/tools/types.js';

export interface Call {
  name: string;
  args: Record<string, unknown>;
}

/** How a model receives functions and calls them: a chat template of its kind, and what it would write. */
export interface ToolFormat {
  name: string;
  format: ToolFormatName;
  template: string;
  /** Special tokens of its vocabulary, besides those of ends and turns. */
  specialTokens: readonly string[];
  /** Text by which the prompt introduces functions, up to the first of them. */
  told: string;
  /** The text that the model writes to call functions. */
  write(calls: readonly Call[]): string;
  mayTalkFirst: boolean;
  /** How it says something to the user before a call. Default: as text, and a line break. */
  talk?(text: string): string;
  /** Texts that are nearly calls, and are not. */
  malformed: readonly string[];
}

const chatMl = (tools: string, calls: string) =>
  [
    `{%- if tools %}{{- '<|im_start|>system\\n' }}${tools}{{- '<|im_end|>\\n' }}{% endif -%}`,
    '{%- for message in messages %}',
    "{%- if message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}",
    "{%- else %}{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}",
    `{%- for call in message.tool_calls or [] %}{%- set call = call.function %}${calls}{%- endfor %}`,
    "{{- '<|im_end|>\\n' }}{%- endif %}{%- endfor %}",
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}",
  ].join('');

const LIST = '{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}';

const hermes: ToolFormat = {
  name: 'Qwen and Hermes',
  format: 'hermes',
  template: chatMl(
    `{{- '# Tools\\n\\n<tools>' }}${LIST}{{- '</tools>\\n\\nWithin <tool_call></tool_call>: {"name": <function-name>, "arguments": <args>}' }}`,
    `{{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}{{- call.arguments | tojson }}{{- '}\\n</tool_call>' }}`,
  ),
  // Qwen's vocabulary has the tags as tokens; that they are special is Hermes's.
  specialTokens: ['<tool_call>', '</tool_call>'],
  told: '# Tools\n\n<tools>{"',
  write: (calls) =>
    calls
      .map(({ name, args }) => `<tool_call>\n${spaced({ name, arguments: args })}\n</tool_call>`)
      .join('\n'),
  mayTalkFirst: true,
  malformed: ['<tool_call>\nget_weather("Rome")\n</tool_call>', '<tool_call>{"tool": "x"}</tool_call>'],
};

const qwen3Coder: ToolFormat = {
  name: 'Qwen3-Coder',
  format: 'qwen3_coder',
  template: chatMl(
    `{{- '# Tools\\n\\n<tools>' }}${LIST}{{- '</tools>\\n\\n<tool_call>\\n<function=example>\\n<parameter=a>\\nvalue\\n</parameter>\\n</function>\\n</tool_call>' }}`,
    "{{- '\\n<tool_call>\\n<function=' + call.name + '>\\n' }}{%- for key, value in call.arguments | items %}{{- '<parameter=' + key + '>\\n' }}{{- value if value is string else value | tojson }}{{- '\\n</parameter>\\n' }}{%- endfor %}{{- '</function>\\n</tool_call>' }}",
  ),
  specialTokens: [],
  told: '# Tools\n\n<tools>{"',
  write: (calls) =>
    calls
      .map(({ name, args }) => {
        const tags = Object.entries(args).map(([key, value]) => {
          return `<parameter=${key}>\n${typeof value === 'string' ? value : spaced(value)}\n</parameter>\n`;
        });
        return `<tool_call>\n<function=${name}>\n${tags.join('')}</function>\n</tool_call>`;
      })
      .join('\n'),
  mayTalkFirst: true,
  malformed: ['<tool_call>\nget_weather("Rome")\n</tool_call>', '<function=get weather>Rome</function>'],
};

const llama = (tools: string, calls: string) =>
  [
    '{{- bos_token }}',
    `{%- if tools %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}${tools}{{- '<|eot_id|>' }}{%- endif %}`,
    '{%- for message in messages %}',
    "{%- set role = 'ipython' if message.role == 'tool' else message.role %}",
    "{{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' + (message.content or '') }}",
    `{%- if message.tool_calls %}${calls}{%- endif %}{{- '<|eot_id|>' }}{%- endfor %}`,
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
  ].join('');
const LLAMA_TOKENS = ['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>', '<|python_tag|>'];

const llama3Json: ToolFormat = {
  name: 'Llama 3 in JSON',
  format: 'llama3_json',
  template: llama(
    `{{- 'Functions: ' }}${LIST}{{- '\\nRespond in the format {"name": function name, "parameters": dictionary of argument name and its value}.' }}`,
    `{%- for call in message.tool_calls %}{{- '; ' if not loop.first }}{{- '{"name": "' + call.function.name + '", "parameters": ' }}{{- call.function.arguments | tojson }}{{- '}' }}{%- endfor %}`,
  ),
  specialTokens: LLAMA_TOKENS,
  told: 'Functions: {"',
  write: (calls) => calls.map(({ name, args }) => spaced({ name, parameters: args })).join('; '),
  mayTalkFirst: false,
  malformed: ['{"name": "nobody", "parameters": {}}', '{"city": "Rome"}', 'Call {"name": "get_weather"}'],
};

const pythonic: ToolFormat = {
  name: 'Llama 3.2 and 4 in Python',
  format: 'pythonic',
  template: llama(
    `{{- 'Functions: ' }}${LIST}{{- '\\nWrite calls as [func_name1(params_name1=params_value1), func_name2(params)].' }}`,
    `{{- '[' }}{%- for call in message.tool_calls %}{{- ', ' if not loop.first }}{{- call.function.name + '(' }}{%- for key, value in call.function.arguments | items %}{{- ', ' if not loop.first }}{{- key + '=' }}{{- value | tojson }}{%- endfor %}{{- ')' }}{%- endfor %}{{- ']' }}`,
  ),
  specialTokens: LLAMA_TOKENS,
  told: 'Functions: {"',
  write: (calls) => `[${calls.map(({ name, args }) => `${name}(${keywords(args)})`).join(', ')}]`,
  mayTalkFirst: false,
  malformed: ['[nobody(a=1)]', '[1, 2, 3]', 'See [get_weather(city="Rome")]'],
};

const mistralTemplate = (calls: string) =>
  [
    '{{- bos_token }}',
    `{%- if tools %}{{- '[AVAILABLE_TOOLS] [' }}${LIST}{{- '][/AVAILABLE_TOOLS]' }}{%- endif %}`,
    '{%- for message in messages %}',
    "{%- if message.role == 'user' %}{{- '[INST] ' + message.content + '[/INST]' }}",
    "{%- elif message.role == 'tool' %}{{- '[TOOL_RESULTS] {\"content\": ' }}{{- message.content | tojson }}{{- ', \"call_id\": \"' + message.tool_call_id + '\"}[/TOOL_RESULTS]' }}",
    `{%- elif message.tool_calls %}${calls}{{- eos_token }}`,
    "{%- else %}{{- ' ' + message.content + eos_token }}{%- endif %}{%- endfor %}",
  ].join('');
const MISTRAL_TOKENS = [
  '[AVAILABLE_TOOLS]',
  '[/AVAILABLE_TOOLS]',
  '[TOOL_RESULTS]',
  '[/TOOL_RESULTS]',
  '[INST]',
  '[/INST]',
  '[TOOL_CALLS]',
];

const mistral: ToolFormat = {
  name: 'Mistral',
  format: 'mistral',
  template: mistralTemplate(
    `{{- '[TOOL_CALLS] [' }}{%- for call in message.tool_calls %}{{- ', ' if not loop.first }}{{- '{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}{{- ', "id": "' + call.id + '"}' }}{%- endfor %}{{- ']' }}`,
  ),
  specialTokens: MISTRAL_TOKENS,
  told: '[AVAILABLE_TOOLS] [{"',
  write: (calls) => `[TOOL_CALLS] ${spaced(calls.map(({ name, args }) => ({ name, arguments: args })))}`,
  mayTalkFirst: true,
  malformed: ['[TOOL_CALLS] none', '[{"name": "get_weather", "arguments": {}}]'],
};

const mistralNamed: ToolFormat = {
  ...mistral,
  name: 'Mistral since Small 3.2',
  template: mistralTemplate(
    "{%- for call in message.tool_calls %}{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' }}{{- call.function.arguments | tojson }}{%- endfor %}",
  ),
  specialTokens: [...MISTRAL_TOKENS, '[ARGS]'],
  write: (calls) => calls.map(({ name, args }) => `[TOOL_CALLS]${name}[ARGS]${spaced(args)}`).join(''),
};

const deepSeekTemplate = (told: string, before: string, behind: string) =>
  [
    '{{- bos_token }}',
    `{%- if tools %}{{- '## Tools\\n' }}${LIST}{{- '\\n${told}\\n' }}{%- endif %}`,
    '{%- for message in messages %}',
    "{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content }}",
    "{%- elif message.role == 'tool' %}{{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' }}",
    "{%- else %}{{- '<｜Assistant｜>' + (message.content or '') }}{%- if message.tool_calls %}{{- '<｜tool▁calls▁begin｜>' }}",
    "{%- for call in message.tool_calls %}{{- '<｜tool▁call▁begin｜>' }}",
    `{{- ${before} }}{{- call.function.arguments | tojson }}{{- '${behind}<｜tool▁call▁end｜>' }}{%- endfor %}`,
    "{{- '<｜tool▁calls▁end｜>' }}{%- endif %}{{- eos_token }}{%- endif %}{%- endfor %}",
    "{%- if add_generation_prompt %}{{- '<｜Assistant｜>' }}{%- endif %}",
  ].join('');
const DEEPSEEK_TOKENS = [
  ...[
    '<｜User｜>',
    '<｜Assistant｜>',
    '<｜tool▁calls▁begin｜>',
    '<｜tool▁calls▁end｜>',
    '<｜tool▁call▁begin｜>',
  ],
  ...['<｜tool▁call▁end｜>', '<｜tool▁sep｜>', '<｜tool▁output▁begin｜>', '<｜tool▁output▁end｜>'],
];
const listed = (calls: readonly string[], separator: string) =>
  `<｜tool▁calls▁begin｜>${calls.map((call) => `<｜tool▁call▁begin｜>${call}<｜tool▁call▁end｜>`).join(separator)}<｜tool▁calls▁end｜>`;

const deepSeekV3: ToolFormat = {
  name: 'DeepSeek V3 and R1',
  format: 'deepseek_v3',
  template: deepSeekTemplate(
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name\\n```json\\nargs\\n```<｜tool▁call▁end｜>',
    "'function<｜tool▁sep｜>' + call.function.name + '\\n```json\\n'",
    '\\n```',
  ),
  specialTokens: DEEPSEEK_TOKENS,
  told: '## Tools\n{"',
  write: (calls) =>
    listed(
      calls.map(({ name, args }) => `function<｜tool▁sep｜>${name}\n\`\`\`json\n${spaced(args)}\n\`\`\``),
      '\n',
    ),
  mayTalkFirst: true,
  malformed: ['<｜tool▁calls▁begin｜>nothing', '<｜tool▁call▁begin｜>get_weather(1)'],
};

const deepSeekV31: ToolFormat = {
  ...deepSeekV3,
  name: 'DeepSeek V3.1',
  template: deepSeekTemplate(
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>args<｜tool▁call▁end｜>',
    "call.function.name + '<｜tool▁sep｜>'",
    '',
  ),
  write: (calls) =>
    listed(
      calls.map(({ name, args }) => `${name}<｜tool▁sep｜>${spaced(args)}`),
      '',
    ),
};

const harmony: ToolFormat = {
  name: 'gpt-oss',
  format: 'harmony',
  template: [
    "{{- '<|start|>system<|message|>Reasoning: ' + (reasoning_effort or 'medium') + '<|end|>' }}",
    `{%- if tools %}{{- '<|start|>developer<|message|># Tools\\n' }}${LIST}{{- '<|end|>' }}{%- endif %}`,
    '{%- for message in messages %}',
    "{%- if message.role == 'tool' %}{{- '<|start|>functions.' + message.name + ' to=assistant<|channel|>commentary<|message|>' + message.content + '<|end|>' }}",
    "{%- elif message.tool_calls %}{%- set call = message.tool_calls[0].function %}{{- '<|start|>assistant<|channel|>commentary to=functions.' + call.name + ' <|constrain|>json<|message|>' }}{{- call.arguments | tojson }}{{- '<|call|>' }}",
    "{%- elif message.role == 'assistant' %}{{- '<|start|>assistant<|channel|>final<|message|>' + message.content + '<|end|>' }}",
    "{%- else %}{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}{%- endif %}{%- endfor %}",
    "{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}",
  ].join(''),
  specialTokens: [
    ...['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', '<|call|>', '<|return|>'],
  ],
  told: '# Tools\n{"',
  write: (calls) =>
    calls
      .map(
        ({ name, args }) =>
          `commentary to=functions.${name} <|constrain|>json<|message|>${spaced(args)}<|call|>`,
      )
      .map((message) => `<|channel|>${message}`)
      .join('<|start|>assistant'),
  mayTalkFirst: true,
  talk: (text) => `<|channel|>commentary<|message|>${text}<|end|><|start|>assistant`,
  malformed: ['commentary to=functions.get_weather json {"city": "Rome"}', 'functions.get_weather(1)'],
};

const gemma4Value = [
  "{%- macro written(value) -%}{%- if value is none -%}null{%- elif value is boolean -%}{{- 'true' if value else 'false' -}}",
  "{%- elif value is string -%}{{- '<|\"|>' + value + '<|\"|>' -}}",
  "{%- elif value is mapping -%}{{- '{' -}}{%- for key, one in value | dictsort -%}{{- ',' if not loop.first -}}{{- key + ':' -}}{{- written(one) -}}{%- endfor -%}{{- '}' -}}",
  "{%- elif value is sequence -%}[{%- for one in value -%}{{- ',' if not loop.first -}}{{- written(one) -}}{%- endfor -%}]",
  '{%- else -%}{{- value -}}{%- endif -%}{%- endmacro -%}',
].join('');
const gemma4: ToolFormat = {
  name: 'Gemma 4',
  format: 'gemma4',
  template: [
    gemma4Value,
    `{%- if tools %}{{- '<|turn>system\\n<|tool>' }}${LIST}{{- '<tool|><turn|>\\n' }}{%- endif %}`,
    '{%- for message in messages %}',
    "{%- if message.role == 'tool' %}{{- '<|tool_response>response:' + message.name + '{value:' }}{{- written(message.content) }}{{- '}<tool_response|>' }}",
    "{%- else %}{{- '<|turn>' + message.role + '\\n' + (message.content or '') }}",
    "{%- for call in message.tool_calls or [] %}{{- '<|tool_call>call:' + call.function.name }}{{- written(call.function.arguments) }}{{- '<tool_call|>' }}{%- endfor %}",
    "{%- if not message.tool_calls %}{{- '<turn|>\\n' }}{%- endif %}{%- endif %}{%- endfor %}",
    "{%- if add_generation_prompt %}{{- '<|turn>model\\n' }}{%- if not enable_thinking %}{{- '<|channel>thought\\n<channel|>' }}{%- endif %}{%- endif %}",
    '{#- tool_call_id -#}',
  ].join(''),
  specialTokens: [
    ...['<|turn>', '<turn|>', '<|tool>', '<tool|>', '<|tool_call>', '<tool_call|>', '<|"|>'],
    ...['<|tool_response>', '<tool_response|>', '<|channel>', '<channel|>'],
  ],
  told: '<|turn>system\n<|tool>{"',
  write: (calls) =>
    calls.map(({ name, args }) => `<|tool_call>call:${name}${gemma4Text(args)}<tool_call|>`).join(''),
  mayTalkFirst: true,
  malformed: [
    '<|tool_call>get_weather(Rome)<tool_call|>',
    'call:get_weather{city:1}',
    '<|tool_call>call:search{',
  ],
};

export const TOOL_FORMATS: readonly ToolFormat[] = [
  hermes,
  qwen3Coder,
  llama3Json,
  pythonic,
  mistral,
  mistralNamed,
  deepSeekV3,
  deepSeekV31,
  gemma4,
  harmony,
];

/** JSON as models write it. */
function spaced(value: unknown): string {
  return JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, ' ')
    .replaceAll(/([[{]) | (?=[\]}])/g, '$1');
}

/** Names in their order, as the template has them. */
function gemma4Text(value: unknown): string {
  if (typeof value === 'string') return `<|"|>${value}<|"|>`;
  if (Array.isArray(value)) return `[${value.map(gemma4Text).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, one]) => `${name}:${gemma4Text(one)}`).join(',')}}`;
}

function keywords(args: Record<string, unknown>): string {
  return Object.entries(args)
    .map(([name, value]) => `${name}=${python(value)}`)
    .join(', ');
}

function python(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  return JSON.stringify(value);
}
