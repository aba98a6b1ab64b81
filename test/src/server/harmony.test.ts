import { describe, expect, it } from 'vitest';
import { HARMONY_TOKENS } from '../../../src/generation/harmony/tokens.js';
import type { DetokenizerOptions, TextCodec } from '../../../src/generation/text-model.js';
import { askedRequest } from '../../../src/library/asked-request.js';
import { FakeEngine } from '../support/fake-engine.js';
import { promptText, renderedCodec } from '../support/rendered-codec.js';
import { bytesOf } from '../support/toy-codec.js';
import { readFrames, toyModel, toyServer } from '../support/toy-server.js';

// What gpt-oss writes is the same in every API, and the marks of its format are in none.

const TEMPLATE = [
  "<|start|>system<|message|>{{ reasoning_effort or 'medium' }}<|end|>{{ tools and tools | length }}",
  "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.thinking or '' }}|{{ m.content }}<|end|>{% endfor %}<|channel|>",
].join('');
/** Ids of the special tokens, after those of bytes. */
const FIRST_SPECIAL = 300;

/** Bytes as tokens, and the format's special tokens. */
function harmonyCodec(): TextCodec {
  return {
    ...renderedCodec(TEMPLATE),
    specialTexts: HARMONY_TOKENS,
    createDetokenizer: ({ skipSpecialTokens, shownTokens = [] }: DetokenizerOptions) => {
      const marks = new Map(
        shownTokens.flatMap((one) => (typeof one === 'string' ? [] : [[one.token, one.mark]])),
      );
      const decoder = new TextDecoder();
      const textOf = (token: number) => {
        if (token < 256) return decoder.decode(Uint8Array.of(token), { stream: true });
        const special = HARMONY_TOKENS[token - FIRST_SPECIAL]!;
        return marks.get(special) ?? (skipSpecialTokens ? '' : special);
      };
      return {
        push: (tokens) => Array.from(tokens, textOf).join(''),
        flush: () => decoder.decode(),
      };
    },
  };
}

/** Tokens of an answer; a text in « » is spelled. */
function tokensOf(answer: string): number[] {
  return answer.split(/(<\|\w+\|>)(?![^«]*»)/).flatMap((part) => {
    const special = (HARMONY_TOKENS as readonly string[]).indexOf(part);
    return special < 0 ? bytesOf(part.replaceAll(/[«»]/g, '')) : [FIRST_SPECIAL + special];
  });
}

function server(answer: string) {
  const model = { codec: harmonyCodec(), vocabSize: 400, maxInputLen: 4000, maxSeqLen: 5000 };
  return toyServer(() => [...tokensOf(answer).map((token) => ({ tokens: [token] })), { finish: 'stop' }], {
    model,
  });
}

const messages = [{ role: 'user', content: 'hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const named = { name: 'weather', description: 'Of a city.' };
const functions = [{ type: 'function', function: { ...named, parameters } }];

const NEXT = '<|end|><|start|>assistant';
const THOUGHT = '<|channel|>analysis<|message|>Hm 🪿.';
const FINAL = '<|channel|>final<|message|>So: «<|end|>» ends.\nMore';
const CALL = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}';

interface Api {
  path: string;
  body: object;
  tools: object;
  stop: object;
}
const APIS: Record<string, Api> = {
  openai: {
    path: '/v1/chat/completions',
    body: { messages },
    tools: { tools: functions },
    stop: { stop: ['\n', 'H'] },
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'hi' },
    tools: { tools: [{ type: 'function', ...named, parameters }] },
    stop: { stop: ['\n', 'H'] },
  },
  anthropic: {
    path: '/v1/messages',
    body: { messages, max_tokens: 200 },
    tools: { tools: [{ ...named, input_schema: parameters }] },
    stop: { stop_sequences: ['\n', 'H'] },
  },
  ollama: {
    path: '/api/chat',
    body: { model: 'toy', messages, stream: false },
    tools: { tools: functions },
    stop: { options: { stop: ['\n', 'H'] } },
  },
};

/** All texts in an answer. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

async function answered(toy: ReturnType<typeof server>, path: string, body: object) {
  const response = await toy.post(path, body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(text).not.toMatch(/\\ud[c-f]|<\|channel/);
  return text;
}

describe.each(Object.entries(APIS))('an answer in channels, of %s', (name, { path, body, tools, stop }) => {
  it('is reasoning and content, where a special token that is only spelled stays', async () => {
    const texts = textsIn(JSON.parse(await answered(server(`${THOUGHT}${NEXT}${FINAL}`), path, body)));
    expect(texts).toContain('Hm 🪿.');
    expect(texts).toContain('So: <|end|> ends.\nMore');
  });

  it('has its stop strings in the content alone', async () => {
    const texts = textsIn(
      JSON.parse(await answered(server(`${THOUGHT}${NEXT}${FINAL}`), path, { ...body, ...stop })),
    );
    expect(texts).toContain('Hm 🪿.');
    expect(texts).toContain('So: <|end|> ends.');
  });

  it('is a call behind reasoning', async () => {
    const text = await answered(server(`${THOUGHT}${NEXT}${CALL}`), path, { ...body, ...tools });
    const texts = textsIn(JSON.parse(text));
    expect(texts).toContain('Hm 🪿.');
    expect(texts).toContain('weather');
    expect(text.replaceAll(/\\"|[" ]/g, '')).toContain('{city:Oslo}');
    const end = { openai: 'tool_calls', anthropic: 'tool_use' }[name];
    if (end !== undefined) expect(texts).toContain(end);
  });

  it('comes in a stream too, token by token', async () => {
    const text = await answered(server(`${THOUGHT}${NEXT}${FINAL}`), path, { ...body, stream: true });
    const lines = text.split('\n').filter((line) => /^(data: )?\{/.test(line));
    const texts = lines.flatMap((line) => textsIn(JSON.parse(line.replace('data: ', ''))));
    expect(texts).toContain('🪿');
    expect(texts.join('')).not.toMatch(/analysis|commentary/);
    expect(texts.filter((one) => one === '<')).not.toEqual([]);
  });

  it('to a tool of its own is reasoning', async () => {
    const toy = server('<|channel|>analysis to=python code<|message|>print(1)');
    expect(textsIn(JSON.parse(await answered(toy, path, { ...body, ...tools })))).toContain('print(1)');
  });
});

interface Chunk {
  choices: { delta: { tool_calls?: { function: { arguments: string } }[] } }[];
}

describe('/v1/chat/completions', () => {
  const path = '/v1/chat/completions';

  it('counts the reasoning, and streams a call as it comes', async () => {
    const toy = server(`${THOUGHT}${NEXT}${CALL}`);
    const whole = JSON.parse(await answered(toy, path, { messages, tools: functions }));
    const reasoning = tokensOf(`${THOUGHT}<|end|>`).length;
    expect(whole.usage.completion_tokens_details).toMatchObject({ reasoning_tokens: reasoning });
    const stream = await toy.post(path, { messages, tools: functions, stream: true });
    const { data } = await readFrames(stream);
    const chunks = data.slice(0, -1).map((one) => JSON.parse(one) as Chunk);
    const calls = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
    expect(calls.length).toBeGreaterThan(5);
    const pieces = calls.map((call) => call.function.arguments);
    expect(pieces.join('')).toBe('{"city": "Oslo"}');
  });

  it('shows no special token where they are not to be skipped', async () => {
    const ask = { messages, skip_special_tokens: false };
    const { choices } = JSON.parse(await answered(server(`${THOUGHT}${NEXT}${FINAL}<|return|>`), path, ask));
    expect(choices[0].message.content).toBe('So: <|end|> ends.\nMore');
  });

  it('goes on within reasoning or content that a client has begun', async () => {
    const ask = (last: object) => ({
      messages: [...messages, { role: 'assistant', ...last }],
      continue_final_message: true,
    });
    const begun = server(`m.${NEXT}${FINAL}`);
    const { choices } = JSON.parse(await answered(begun, path, ask({ content: '', reasoning: 'H' })));
    expect(choices[0].message).toMatchObject({ reasoning: 'm.', content: 'So: <|end|> ends.\nMore' });
    expect(promptText(begun.engine.requests[0]!.promptTokens)).toMatch(
      /<\|channel\|>analysis<\|message\|>H$/,
    );
    const final = JSON.parse(await answered(server('es.'), path, ask({ content: 'Y' })));
    expect(final.choices[0].message).toMatchObject({ content: 'es.' });
  });

  it('has no budget, which is told', async () => {
    const refused = await server('x').post(path, { messages, thinking_token_budget: 5 });
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain('any number of messages');
    const thinking = { type: 'enabled', budget_tokens: 1024 };
    const warned = await server(`${FINAL}`).post('/v1/messages', { messages, max_tokens: 2000, thinking });
    expect(warned.headers.get('x-skein-warning')).toContain("'thinking.budget_tokens' has no effect");
  });
});

it.each([
  ['/v1/chat/completions', { messages, reasoning_effort: 'high' }, 'high'],
  ['/v1/responses', { input: 'hi', reasoning: { effort: 'minimal' } }, 'low'],
  ['/v1/messages', { messages, max_tokens: 10, output_config: { effort: 'low' } }, 'low'],
  ['/api/chat', { model: 'toy', messages, think: 'high' }, 'high'],
  ['/api/chat', { model: 'toy', messages, think: false }, 'medium'],
  ['/api/generate', { model: 'toy', prompt: 'hi', think: 'low' }, 'low'],
])('%s: %j reaches the template', async (path, body, effort) => {
  const toy = server(FINAL);
  await answered(toy, path, body);
  expect(promptText(toy.engine.requests[0]!.promptTokens)).toContain(
    `<|start|>system<|message|>${effort}<|end|>`,
  );
});

it('programs get the parts of an answer without asking for them', async () => {
  const model = toyModel(new FakeEngine(() => []), { codec: harmonyCodec(), vocabSize: 400 });
  const { plan, request } = await askedRequest(model, {
    messages: [{ role: 'user', content: 'hi' }],
    maxTokens: 5,
  });
  const parser = plan!.createParser!();
  expect(request.createParser).toBeTypeOf('function');
  expect(parser.push('Hi')).toEqual([{ type: 'content', text: 'Hi' }]);
});
