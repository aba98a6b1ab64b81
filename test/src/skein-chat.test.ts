import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChatPiece, type FunctionTool, InvalidRequestError, Skein, Tokenizer } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { repository } from '../support/documents.js';
import { testCacheDir } from './support/skein-process.js';

const weather: FunctionTool = {
  name: 'get_weather',
  description: 'The weather at a place',
  parameters: {
    type: 'object',
    properties: { place: { enum: ['Rome', 'Oslo'] } },
    required: ['place'],
    additionalProperties: false,
  },
};
const messages = [{ role: 'user', content: 'How is the weather in Oslo?' }] as const;
const chat = { messages, tools: [weather], seed: 1, maxTokens: 100 } as const;

let skein: Skein;
beforeAll(async () => {
  skein = await Skein.load({
    model: join(repository, 'models/demo/gosling'),
    cacheDir: testCacheDir,
    threads: 1,
  });
});
afterAll(() => skein?.close());

describe('an embedded model', () => {
  it('takes a modest KV cache unless it is told otherwise', async () => {
    expect(skein.info.kvTokens).toBe(32_768);
    const { model: _, ...options } = { model: '', cacheDir: testCacheDir, threads: 1 };
    await using small = await Skein.load({
      ...options,
      model: join(repository, 'models/demo/gosling'),
      kvCacheTokens: 1024,
    });
    expect(small.info.kvTokens).toBe(1024);
  });

  it('computes only what a turn of a chat adds, unless it is told otherwise', async () => {
    const computedInTurns = async (model: Skein) => {
      const computed: number[] = [];
      const chat = await model.chat({ system: 'You tell stories of geese. '.repeat(10), seed: 1 });
      for (const question of ['Tell me a story', 'And another']) {
        let tokens = 0;
        const leave = model.onStats(({ contextTokens }) => {
          tokens += contextTokens;
        });
        await chat.send(question, { maxTokens: 8 });
        leave();
        computed.push(tokens);
      }
      return computed as [number, number];
    };
    const [first, second] = await computedInTurns(skein);
    expect(second).toBeLessThan(first / 2);

    await using without = await Skein.load({
      model: join(repository, 'models/demo/gosling'),
      cacheDir: testCacheDir,
      threads: 1,
      prefixCaching: false,
    });
    const [one, two] = await computedInTurns(without);
    expect(one).toBe(first);
    expect(two).toBeGreaterThan(one);
  });

  it('answers in the form of a schema of zod, which parses the answer', async () => {
    const schema = z.object({ place: z.enum(['Rome', 'Oslo']), days: z.number().int().min(1).max(9) });
    const { text, toolCalls } = await skein.complete({ messages, guided: { json: schema }, maxTokens: 200 });
    expect(schema.parse(JSON.parse(text))).toBeDefined();
    expect(toolCalls).toBeUndefined();
  });

  it('ends with the block of `await using`', async () => {
    let ended: Skein;
    {
      await using one = await Skein.load({
        model: join(repository, 'models/demo/gosling'),
        cacheDir: testCacheDir,
        threads: 1,
      });
      ended = one;
    }
    await expect(ended.complete({ prompt: 'a' })).rejects.toThrow('closed');
  });
});

describe('a model that reasons', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-template-'));
  const chatTemplate = join(folder, 'thinks.jinja');
  let thinking: Skein;
  beforeAll(async () => {
    const source =
      "{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}<think>\n{# </think> #}";
    writeFileSync(chatTemplate, source);
    const model = join(repository, 'models/demo/gosling');
    thinking = await Skein.load({ model, cacheDir: testCacheDir, threads: 1, chatTemplate });
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await thinking?.close();
  });

  it('reasons before an answer of the form that is asked for, whether or not reasoning is asked for', async () => {
    const asked = { messages, guided: { choice: ['yes', 'no'] }, maxTokens: 12, seed: 1 };
    for (const more of [{}, { reasoning: true }]) {
      const { text, reasoning } = await thinking.complete({ ...asked, ...more });
      expect(text).toBe('');
      expect(reasoning).not.toMatch(/^(?:yes|no|)$/);
    }
    await expect(thinking.complete({ ...asked, ignoreEos: true })).rejects.toThrow('guided');
  });

  it('has a text of that form where its template does not let it reason', async () => {
    const answer = await skein.complete({ messages, guided: { choice: ['yes', 'no'] }, maxTokens: 12 });
    expect(['yes', 'no']).toContain(answer.text);
    expect(answer.reasoning).toBeUndefined();
  });

  it('tells what of a schema it does not follow', async () => {
    const json = { type: 'array', uniqueItems: true, items: { type: 'string', format: 'phone' } };
    const guided = { json, isLenient: true };
    const [said] = messages;
    for (const given of [{ messages }, { prompt: said.content }]) {
      const { warnings } = await skein.complete({ ...given, guided, maxTokens: 4 });
      expect(warnings).toEqual([expect.stringContaining('is not followed')]);
    }
  });
});

it('Skein.load names its own option where a chat template is not found', async () => {
  const model = join(repository, 'models/demo/gosling');
  const load = Skein.load({ model, cacheDir: testCacheDir, threads: 1, chatTemplate: 'none' });
  await expect(load).rejects.toThrow(/^chatTemplate "none" is neither a file/);
});

describe('Tokenizer', () => {
  it('encodes and decodes as the model does, with or without it', async () => {
    await using alone = await Tokenizer.open(join(repository, 'models/demo/gosling'));
    const text = 'Once upon a time there was a café. 🦆';
    const tokens = await alone.encode(text);
    expect([...tokens]).toEqual([...(await skein.encode(text))]);
    expect(alone.decode(tokens)).toContain('café. 🦆');
    const decoder = skein.tokenizer.decoder();
    let pieces = '';
    for (const token of tokens) pieces += decoder.push([token]);
    expect(pieces + decoder.end()).toBe(alone.decode(tokens));
    const chat = await alone.encodeChat(messages);
    const { promptTokens } = await skein.complete({ messages, maxTokens: 1 });
    expect(chat).toHaveLength(promptTokens);
  });
});

describe('tools of Skein.complete and Skein.generate', () => {
  it('are called where they have to be, with arguments of their schema', async () => {
    for (const toolChoice of ['required', { name: 'get_weather' }] as const) {
      const { text, toolCalls, reasoning } = await skein.complete({ ...chat, toolChoice });
      expect([text, reasoning, toolCalls?.length]).toEqual(['', undefined, 1]);
      const [call] = toolCalls!;
      expect(call).toMatchObject({ id: expect.stringMatching(/^call_\w{24}$/), name: 'get_weather' });
      expect(['Rome', 'Oslo']).toContain(JSON.parse(call!.arguments).place);
    }
  });

  it('come piece by piece, as they are written', async () => {
    const pieces: ChatPiece[] = [];
    for await (const piece of skein.generate({ ...chat, toolChoice: 'required' })) pieces.push(piece);
    const parts = pieces.flatMap(({ toolCalls = [] }) => toolCalls);
    expect(parts.length).toBeGreaterThan(2);
    expect(new Set(parts.map(({ id }) => id)).size).toBe(new Set(parts.map(({ index }) => index)).size);
    const first = parts.filter(({ index }) => index === 0).map((part) => part.arguments);
    expect(JSON.parse(first.join(''))).toHaveProperty('place');
    expect(pieces.at(-1)!.finishReason).not.toBeNull();
  });

  it('belong to each of several answers', async () => {
    const answers = await skein.completeSeveral({ ...chat, toolChoice: 'required', n: 2 });
    const ids = answers.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
    expect(answers.every(({ toolCalls = [] }) => toolCalls.length > 0)).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('come back as they were given, in the flat form too', async () => {
    const { text, toolCalls } = await skein.complete({ ...chat, toolChoice: 'required' });
    const [call] = toolCalls!;
    const openai = toolCalls!.map(({ id, ...callee }) => ({ id, type: 'function', function: callee }));
    const counts = [];
    for (const tool_calls of [toolCalls, openai, undefined]) {
      const said = { role: 'assistant', content: text, ...(tool_calls && { tool_calls }) };
      const result = { role: 'tool', tool_call_id: call!.id, content: 'rain' };
      const rest = [...messages, said, result];
      counts.push((await skein.complete({ ...chat, messages: rest, maxTokens: 1 })).promptTokens);
    }
    expect(counts[0]).toBe(counts[1]);
    expect(counts[0]).toBeGreaterThan(counts[2]!);
  });

  it('go on with a result, and are not called where they may not be', async () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } };
    const rest = [
      ...messages,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
    ];
    const answer = await skein.complete({ ...chat, messages: rest, toolChoice: 'none' });
    expect(answer.toolCalls).toBeUndefined();
    expect(answer.text).not.toBe('');
  });

  it.each([
    [{ tools: [{ name: 'a b' }] }, 'tools', 'tools[0].name is "a b"'],
    [
      { tools: [weather, weather] },
      'tools',
      'tools[1].name is "get_weather", which another tool is called already.',
    ],
    [{ tools: [{ type: 'function', function: weather }] }, 'tools', "as in OpenAI's API"],
    [{ tools: [{ name: 'a', parametres: {} }] }, 'tools', 'did you mean parameters?'],
    [{ toolChoice: 'required', tools: undefined }, 'toolChoice', 'there are no tools to call'],
    [
      { toolChoice: { name: 'other' } },
      'toolChoice',
      'toolChoice.name is "other"; the tools are get_weather.',
    ],
    [{ messages: undefined, prompt: 'a' }, 'messages', 'need messages'],
    [{ reasoning: { efort: 'low' } }, 'reasoning', 'reasoning is'],
  ])('are refused where they cannot be: %j', async (wrong, param, words) => {
    const error = await skein.complete({ ...chat, ...wrong } as never).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ param, message: expect.stringContaining(words) });
  });

  it('name a schema at fault as the program wrote it', async () => {
    const tools = [{ name: 'a', strict: true, parameters: { type: 'nothing' } }];
    await expect(skein.complete({ ...chat, tools, toolChoice: 'required' })).rejects.toThrow(
      /tools\[0\]\.parameters/,
    );
  });
});
