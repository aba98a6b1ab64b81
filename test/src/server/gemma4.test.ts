import { describe, expect, it } from 'vitest';
import type { DetokenizerOptions, TextCodec } from '../../../src/generation/text-model.js';
import { askedRequest } from '../../../src/library/asked-request.js';
import { FakeEngine } from '../support/fake-engine.js';
import { promptText, renderedCodec } from '../support/rendered-codec.js';
import { bytesOf } from '../support/toy-codec.js';
import { toyModel, toyServer } from '../support/toy-server.js';

// What Gemma 4 writes is the same in every API, and the marks of its format are in none.

const TEMPLATE = [
  "{% if enable_thinking or tools %}<|turn>system\n{{ '<|think|>' if enable_thinking }}{{ tools and tools | length }}<turn|>\n{% endif %}",
  '{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}',
  "{% if add_generation_prompt %}<|turn>model\n{{ '' if enable_thinking else '<|channel>thought\n<channel|>' }}{% endif %}",
  "{# '<|tool_call>call:' tool_call_id #}",
].join('');
const SPECIAL = [
  ...['<|turn>', '<turn|>', '<|think|>', '<|channel>', '<channel|>', '<|tool_call>', '<tool_call|>'],
  ...['<|tool_response>', '<tool_response|>', '<|"|>'],
];
/** Ids of the special tokens, after those of bytes. */
const FIRST_SPECIAL = 300;

/** Bytes as tokens, and the format's special tokens. */
function gemmaCodec(): TextCodec {
  return {
    ...renderedCodec(TEMPLATE),
    specialTexts: SPECIAL,
    encodePiece: (text) => tokensOf(text),
    createDetokenizer: ({ skipSpecialTokens, shownTokens = [] }: DetokenizerOptions) => {
      const decoder = new TextDecoder();
      const textOf = (token: number) => {
        if (token < 256) return decoder.decode(Uint8Array.of(token), { stream: true });
        const special = SPECIAL[token - FIRST_SPECIAL]!;
        return skipSpecialTokens && !shownTokens.includes(special) ? '' : special;
      };
      return { push: (tokens) => Array.from(tokens, textOf).join(''), flush: () => decoder.decode() };
    },
  };
}

function tokensOf(text: string): number[] {
  return text.split(/(<\|\w+\|?>|<\w+\|>|<\|"\|>)/).flatMap((part) => {
    const special = SPECIAL.indexOf(part);
    return special < 0 ? bytesOf(part) : [FIRST_SPECIAL + special];
  });
}

function server(answer: string) {
  const model = { codec: gemmaCodec(), vocabSize: 400, maxInputLen: 4000, maxSeqLen: 5000 };
  return toyServer(() => [...tokensOf(answer).map((token) => ({ tokens: [token] })), { finish: 'stop' }], {
    model,
  });
}

const messages = [{ role: 'user', content: 'hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const named = { name: 'weather', description: 'Of a city.' };
const functions = [{ type: 'function', function: { ...named, parameters } }];

const THOUGHT = '<|channel>thought\nHm 🪿.\n<channel|>';
const CALL = '<|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>';

interface Api {
  path: string;
  body: object;
  thinking: object;
  tools: object;
  stop: object;
}
const APIS: Record<string, Api> = {
  openai: {
    path: '/v1/chat/completions',
    body: { messages },
    thinking: { reasoning_effort: 'low' },
    tools: { tools: functions },
    stop: { stop: ['\n', 'H'] },
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'hi' },
    thinking: { reasoning: { effort: 'high' } },
    tools: { tools: [{ type: 'function', ...named, parameters }] },
    stop: { stop: ['\n', 'H'] },
  },
  anthropic: {
    path: '/v1/messages',
    body: { messages, max_tokens: 2000 },
    thinking: { thinking: { type: 'enabled', budget_tokens: 1024 } },
    tools: { tools: [{ ...named, input_schema: parameters }] },
    stop: { stop_sequences: ['\n', 'H'] },
  },
  ollama: {
    path: '/api/chat',
    body: { model: 'toy', messages, stream: false },
    thinking: { think: true },
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
  expect(text).not.toMatch(/channel|tool_call\||<\|/);
  return text;
}

describe.each(Object.entries(APIS))(
  'an answer of Gemma 4, of %s',
  (name, { path, body, thinking, tools, stop }) => {
    it('is reasoning and content, where the client asks to think', async () => {
      const toy = server(`${THOUGHT}Yes.\nMore<|channel>thought\n<channel|>`);
      const texts = textsIn(JSON.parse(await answered(toy, path, { ...body, ...thinking })));
      expect(texts).toContain('Hm 🪿.');
      expect(texts).toContain('Yes.\nMore');
      const { promptTokens, reasoningBudget } = toy.engine.requests[0]!;
      expect(promptText(promptTokens)).toContain('<|think|>');
      if (name === 'anthropic')
        expect(reasoningBudget).toEqual({
          tokens: 1024,
          endToken: FIRST_SPECIAL + SPECIAL.indexOf('<channel|>'),
          beginToken: FIRST_SPECIAL + SPECIAL.indexOf('<|channel>'),
        });
    });

    it('is content alone where the prompt has closed the thoughts', async () => {
      const toy = server('Yes.\nMore');
      expect(textsIn(JSON.parse(await answered(toy, path, body)))).toContain('Yes.\nMore');
      expect(promptText(toy.engine.requests[0]!.promptTokens)).toContain(
        'model\n<|channel>thought\n<channel|>',
      );
    });

    it('has its stop strings in the content alone', async () => {
      const toy = server(`${THOUGHT}Yes.\nMore`);
      const texts = textsIn(JSON.parse(await answered(toy, path, { ...body, ...thinking, ...stop })));
      expect(texts).toContain('Hm 🪿.');
      expect(texts).toContain('Yes.');
    });

    it('is calls after reasoning and content', async () => {
      const toy = server(`${THOUGHT}Let me look.${CALL}${CALL}`);
      const text = await answered(toy, path, { ...body, ...thinking, ...tools });
      const texts = textsIn(JSON.parse(text));
      expect(texts).toContain('Hm 🪿.');
      expect(texts).toContain('Let me look.');
      // Answers of /v1/responses repeat the tools.
      expect(texts.filter((one) => one === 'weather')).toHaveLength(name === 'responses' ? 3 : 2);
      expect(text.replaceAll(/\\"|[" ]/g, '')).toContain('{city:Oslo}');
      const end = { openai: 'tool_calls', anthropic: 'tool_use' }[name];
      if (end !== undefined) expect(texts).toContain(end);
    });

    it('comes in a stream too, token by token', async () => {
      const toy = server(`${THOUGHT}So 🪿 <b.${CALL}`);
      const text = await answered(toy, path, { ...body, ...thinking, ...tools, stream: true });
      const lines = text.split('\n').filter((line) => /^(data: )?\{/.test(line));
      const texts = lines.flatMap((line) => textsIn(JSON.parse(line.replace('data: ', ''))));
      expect(texts.filter((one) => one.includes('🪿')).length).toBeGreaterThan(1);
      expect(texts).toContain('weather');
      expect(texts.join('')).not.toContain('thought');
    });
  },
);

describe('a chat of Gemma 4 in a program', () => {
  it('has its reasoning apart, also where nothing is asked', async () => {
    const model = { ...toyModel(new FakeEngine(() => [])), codec: gemmaCodec(), vocabSize: 400 };
    const { request, plan } = await askedRequest(model, { messages });
    expect(request.shownTokens).toEqual(['<|channel>', '<channel|>']);
    const parser = plan!.createParser!();
    expect([...parser.push('Yes.<|channel>thought\nHm.<channel|>'), ...parser.end()]).toEqual([
      { type: 'content', text: 'Yes.' },
      { type: 'reasoning', text: 'Hm.' },
    ]);
  });

  it('goes on within its reasoning, with the switch turned on', async () => {
    const toy = server(' so.<channel|>Yes.');
    const last = { role: 'assistant', content: '', reasoning_content: 'Hm' };
    const response = await toy.post('/v1/chat/completions', {
      messages: [...messages, last],
      continue_final_message: true,
    });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(textsIn(JSON.parse(text))).toEqual(expect.arrayContaining(['Yes.', ' so.']));
    expect(promptText(toy.engine.requests[0]!.promptTokens)).toMatch(/model\n<\|channel>thought\nHm$/);
  });
});
