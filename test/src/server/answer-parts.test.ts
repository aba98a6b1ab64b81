import { describe, expect, it } from 'vitest';
import type { FinishReason } from '../../../callbacks/token-request.js';
import type { ToolFormatName } from '../../../src/generation/tools/types.js';
import { bytesOf, templatedCodec } from '../support/toy-codec.js';
import { readChunks, toyServer } from '../support/toy-server.js';

// What is content, reasoning and call is the same in every API, also where a stop string or a limit ends the answer.

const messages = [{ role: 'user', content: 'hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const named = { name: 'weather', description: 'Of a city.' };

interface Ask {
  stop?: string[];
  /** Default: no tools. */
  choice?: 'auto' | 'required' | 'named';
}

/** What a client reads of an answer. */
interface Told {
  content: string;
  reasoning: string;
  /** Names of functions. */
  calls: string[];
  /** Whether a stop string, a limit or the model has ended it. */
  end: string;
}

interface Api {
  path: string;
  body: (ask: Ask) => object;
  told: (answer: never) => Told;
  /** Says that calls are needed; Ollama's has no word for it. */
  forces: boolean;
}

const functions = [{ type: 'function', function: { ...named, parameters } }];
const OPENAI: Api = {
  path: '/v1/chat/completions',
  forces: true,
  body: ({ stop, choice }) => ({
    messages,
    stop,
    ...(choice && {
      tools: functions,
      tool_choice: choice === 'named' ? { type: 'function', function: { name: 'weather' } } : choice,
    }),
  }),
  told: ({ choices: [choice] }: { choices: [OpenAiChoice] }) => ({
    content: choice.message.content ?? '',
    reasoning: choice.message.reasoning ?? '',
    calls: (choice.message.tool_calls ?? []).map((call) => call.function.name),
    end: choice.stop_reason ?? choice.finish_reason,
  }),
};
interface OpenAiChoice {
  message: { content: string | null; reasoning?: string; tool_calls?: { function: { name: string } }[] };
  finish_reason: string;
  stop_reason: string | null;
}

const APIS: Record<string, Api> = {
  openai: OPENAI,
  responses: {
    path: '/v1/responses',
    forces: true,
    body: ({ stop, choice }) => ({
      input: 'hi',
      stop,
      ...(choice && {
        tools: [{ type: 'function', ...named, parameters }],
        tool_choice: choice === 'named' ? { type: 'function', name: 'weather' } : choice,
      }),
    }),
    told: ({ output, status }: { output: ResponseItem[]; status: string }) => ({
      content: textsOf(output, 'message'),
      reasoning: textsOf(output, 'reasoning'),
      calls: output.flatMap(({ type, name }) => (type === 'function_call' ? [name!] : [])),
      end: status,
    }),
  },
  anthropic: {
    path: '/v1/messages',
    forces: true,
    body: ({ stop, choice }) => ({
      messages,
      max_tokens: 100,
      stop_sequences: stop,
      ...(choice && {
        tools: [{ ...named, input_schema: parameters }],
        tool_choice: {
          auto: { type: 'auto' },
          required: { type: 'any' },
          named: { type: 'tool', name: 'weather' },
        }[choice],
      }),
    }),
    told: ({ content, stop_reason, stop_sequence }: AnthropicMessage) => ({
      content: content.map(({ text = '' }) => text).join(''),
      reasoning: content.map(({ thinking = '' }) => thinking).join(''),
      calls: content.flatMap(({ type, name }) => (type === 'tool_use' ? [name!] : [])),
      end: stop_sequence ?? stop_reason,
    }),
  },
  ollama: {
    path: '/api/chat',
    forces: false,
    body: ({ stop, choice }) => ({
      model: 'toy',
      messages,
      stream: false,
      options: { stop },
      ...(choice && { tools: functions }),
    }),
    told: ({ message, done_reason }: { message: OllamaMessage; done_reason: string }) => ({
      content: message.content,
      reasoning: message.thinking ?? '',
      calls: (message.tool_calls ?? []).map((call) => call.function.name),
      end: done_reason,
    }),
  },
};
interface ResponseItem {
  type: string;
  name?: string;
  content?: { text: string }[];
}
interface AnthropicMessage {
  content: { type: string; text?: string; thinking?: string; name?: string }[];
  stop_reason: string;
  stop_sequence: string | null;
}
interface OllamaMessage {
  content: string;
  thinking?: string;
  tool_calls?: { function: { name: string } }[];
}

const textsOf = (output: readonly ResponseItem[], kind: string) =>
  output.flatMap(({ type, content = [] }) => (type === kind ? content.map(({ text }) => text) : [])).join('');

const THINKING =
  "{{ messages }}{{ content.split('</think>') }}{% if tools %}{{ tools }}<tool_call>{% endif %}";
const CALLING = '{% if tools %}{{ tools }}{% endif %}{{ messages }}';

function server(
  text: string,
  finish: FinishReason,
  template = THINKING,
  format: ToolFormatName | 'auto' = 'auto',
) {
  const model = {
    codec: templatedCodec(template),
    toolCallParser: format,
    maxInputLen: 4000,
    maxSeqLen: 5000,
  };
  return toyServer(() => [...bytesOf(text).map((token) => ({ tokens: [token] })), { finish }], { model });
}

async function answer(toy: ReturnType<typeof server>, { path, body, told }: Api, ask: Ask): Promise<Told> {
  const response = await toy.post(path, body(ask));
  expect(response.status).toBe(200);
  return told((await response.json()) as never);
}

describe.each(Object.entries(APIS))('an answer of %s', (_name, api) => {
  const thought = '<think>\nOne.\n\nTwo.\n</think>\n\n';

  it('ends at a stop string of its content, and not of its reasoning', async () => {
    const toy = server(`${thought}Yes.\nAnd more.`, 'stop');
    const told = await answer(toy, api, { stop: ['\n'] });
    expect(told).toMatchObject({ content: 'Yes.', reasoning: 'One.\n\nTwo.', calls: [] });
    if (api === APIS.openai || api === APIS.anthropic) expect(told.end).toBe('\n');
    await expect.poll(() => toy.engine.cancelled).toBe(1);
  });

  it('does not end at one within a call', async () => {
    const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>';
    const toy = server(`${thought}Let me look.\n${call}`, 'stop');
    const told = await answer(toy, api, { stop: ['\n', 'Oslo', '"'], choice: 'auto' });
    expect(told).toMatchObject({ content: 'Let me look.', calls: ['weather'] });
  });

  it('whose call is cut shows as text what is no call yet, where the model chose to call', async () => {
    const begun = '<tool_call>\n{"name": "wea';
    const told = await answer(server(`I look. ${begun}`, 'length'), api, { choice: 'auto' });
    expect(told).toMatchObject({ content: `I look. ${begun}`, calls: [] });
  });
});

const CALLS: Record<ToolFormatName, string> = {
  hermes: '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
  llama3_json: '{"name": "weather", "parameters": {"city": "Oslo"}}',
  pythonic: '[weather(city="Oslo")]',
  mistral: '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Oslo"}}]',
  qwen3_coder:
    '<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>',
  deepseek_v3:
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{"city": "Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  gemma4: '<|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>',
  harmony: '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}<|end|>',
};

describe.each(Object.entries(CALLS))('a call as %s', (format, call) => {
  const forcing = Object.entries(APIS).filter(([, { forces }]) => forces);
  it.each(forcing)('has no markup in the content of %s, wherever a limit cuts it', async (_name, api) => {
    const places = [1, 5, Math.floor(call.length / 3), Math.floor(call.length / 2), call.length - 3];
    for (const choice of ['required', 'named'] as const) {
      for (const place of places) {
        const toy = server(call.slice(0, place), 'length', CALLING, format as ToolFormatName);
        const told = await answer(toy, api, { choice, stop: ['a', '\n'] });
        expect(told.content).toBe('');
        expect(['length', 'incomplete', 'max_tokens']).toContain(told.end);
      }
    }
  });

  it('has none in a stream', async () => {
    const toy = server(call.slice(0, 12), 'length', CALLING, format as ToolFormatName);
    const body = { ...OPENAI.body({ choice: 'required' }), stream: true };
    const chunks = await readChunks<{ choices: { delta: { content?: string | null } }[] }>(
      await toy.post(OPENAI.path, body),
    );
    expect(chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('')).toBe(
      '',
    );
  });

  it('is read whole where nothing cuts it', async () => {
    const toy = server(call, 'stop', CALLING, format as ToolFormatName);
    const told = await answer(toy, OPENAI, { choice: 'required', stop: ['Oslo'] });
    expect(told).toMatchObject({ content: '', calls: ['weather'] });
  });
});
