import * as v from 'valibot';
import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { type ChatEvent, type ChatTool, tool } from '../../../../src/index.js';
import { seeingToy } from '../../support/fake-sight.js';
import { bytesOf } from '../../support/toy-codec.js';
import { say } from '../../support/toy-server.js';
import { call, scriptedChat } from './scripted-chat.js';

const weather = tool({
  description: 'The weather at a place',
  input: z.object({ place: z.string(), days: z.number().int().min(1).default(1) }),
  execute: ({ place, days }) => `${place}: rain for ${days}`,
});

async function eventsOf<T>(stream: AsyncIterable<ChatEvent<T>>): Promise<ChatEvent<T>[]> {
  const events: ChatEvent<T>[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe('a chat', () => {
  it('remembers what was said, behind its system message', async () => {
    const { chat, prompts } = await scriptedChat(['Hi.', 'Ada.'], { system: 'Be brief.' });
    expect(await chat.send('I am Ada.')).toMatchObject({
      text: 'Hi.',
      object: undefined,
      calls: [],
      finishReason: 'stop',
      rounds: 1,
      generatedTokens: 3,
    });
    await chat.send([{ type: 'text', text: 'Who am I?' }]);
    expect(prompts()[1]).toContain(
      '<system>Be brief.</><user>I am Ada.</><assistant>Hi.</><user>Who am I?</>',
    );
    expect(chat.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
    ]);
  });

  it('streams its answer as events, the whole answer last', async () => {
    const { chat } = await scriptedChat(['Hello.']);
    const events = await eventsOf(chat.stream('Hi'));
    const texts = events.flatMap((event) => (event.type === 'text' ? [event.text] : []));
    expect(texts.length).toBeGreaterThan(2);
    expect(texts.join('')).toBe('Hello.');
    expect(events.at(-1)).toMatchObject({ type: 'answer', answer: { text: 'Hello.' } });
  });

  it('takes settings for all turns, and other ones for one', async () => {
    const { chat, engine } = await scriptedChat([], { temperature: 0.5, seed: 1 });
    await chat.send('a');
    await chat.send('b', { seed: 2, maxTokens: 5 });
    expect(engine.requests).toMatchObject([
      { temperature: 0.5, seed: 1n },
      { temperature: 0.5, seed: 2n, maxNewTokens: 5 },
    ]);
  });

  it('refuses a second turn at once, and takes the next one after it', async () => {
    const { chat } = await scriptedChat([[{ waitMs: 20 }, ...say('one')], 'two']);
    const first = chat.send('a');
    await expect(chat.send('b')).rejects.toMatchObject({ code: 'SKEIN_CHAT', reason: 'busy' });
    expect((await first).text).toBe('one');
    expect((await chat.send('b')).text).toBe('two');
  });

  it('is as it was before a turn that is aborted, left or failed', async () => {
    const waiting = [...say('on').slice(0, 2), { waitMs: 60_000 }];
    const { chat, engine } = await scriptedChat([waiting, waiting, [{ error: new Error('broken') }], 'fine']);
    const abort = new AbortController();
    const aborted = chat.send('a', { signal: abort.signal });
    await expect.poll(() => engine.active).toBe(1);
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    for await (const event of chat.stream('b')) if (event.type === 'text') break;
    await expect.poll(() => engine.active).toBe(0);
    await expect(chat.send('c')).rejects.toThrow('broken');
    expect(chat.messages).toEqual([]);
    expect((await chat.send('d')).text).toBe('fine');
    expect(chat.messages).toHaveLength(2);
  });

  it.each([
    [{ temperatur: 1 }, 'did you mean temperature?'],
    [{ prompt: 'a' }, 'chat has no option "prompt"'],
    [{ whenFull: 'panic' }, 'whenFull is "panic"; it must be one of drop, summarise, refuse.'],
    [{ maxRounds: -1 }, 'maxRounds is -1'],
    [{ tools: [] }, 'tools is a list of 0; it must be an object of names and tools'],
    [{ messages: [], saved: {} }, 'messages and saved exclude each other'],
    [{ messages: [{ role: 'usr', content: 'a' }] }, "expected one of 'system'"],
  ])('is not begun with %j', async (options, words) => {
    await expect(scriptedChat([], options as never)).rejects.toThrow(words);
  });

  it.each([
    [5, {}, 'A turn needs a text'],
    ['a', { tools: {} }, 'send has no option "tools"'],
    ['a', { object: z.object({}), guided: { json: true } }, 'object and guided exclude each other'],
    ['a', { object: v.object({}) }, 'a schema of valibot without ~standard.jsonSchema'],
    [[{ type: 'video' }], {}, "parts of type 'video'"],
    [[{ type: 'image_url', image_url: 'data:;base64,AAAA' }], {}, 'has a picture, which is not taken'],
  ])('refuses %j with %j', async (input, options, words) => {
    const { chat } = await scriptedChat([]);
    await expect(chat.send(input as never, options as never)).rejects.toThrow(words);
    expect(chat.messages).toEqual([]);
  });
});

describe('pictures of a chat', () => {
  it('stay in the conversation as data: URLs, and are seen again', async () => {
    const toy = seeingToy();
    const { chat, engine } = await scriptedChat(['A cat.', 'Grey.'], {}, toy.fields);
    await chat.send([
      { type: 'text', text: 'What is it?' },
      { type: 'image', image: Uint8Array.of(7) },
    ]);
    expect(chat.messages[0]!.content).toEqual([
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: 'data:;base64,Bw==' } },
    ]);
    await chat.send('What colour?');
    expect(engine.requests.map(({ imageGrids }) => imageGrids?.length)).toEqual([1, 1]);
    const again = await scriptedChat(['Yes.'], { saved: chat.save() }, toy.fields);
    await again.chat.send('Sure?');
    expect(again.engine.requests[0]!.imageGrids).toHaveLength(1);
  });
});

describe('tools of a chat', () => {
  it('are run with validated arguments, and the model sees what they return', async () => {
    const { chat, prompts } = await scriptedChat(
      [`Let me see. ${call('weather', { place: 'Oslo' })}`, 'Rain.'],
      {
        tools: { weather },
      },
    );
    const answer = await chat.send('How is the weather?');
    expect(answer).toMatchObject({
      text: 'Rain.',
      rounds: 2,
      calls: [
        { name: 'weather', arguments: { place: 'Oslo', days: 1 }, result: 'Oslo: rain for 1', error: null },
      ],
    });
    expect(prompts()[1]).toContain('Oslo: rain for 1');
    const [, said, result] = chat.messages;
    expect(said).toMatchObject({ content: 'Let me see.', tool_calls: [{ type: 'function' }] });
    expect(result).toMatchObject({ role: 'tool', tool_call_id: answer.calls[0]!.id });
  });

  it('run at once up to a limit, and report in the order of their calls', async () => {
    let [running, most] = [0, 0];
    const slow = tool({
      parameters: { type: 'object', properties: { ms: { type: 'integer' } }, required: ['ms'] },
      execute: async ({ ms }) => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, ms as number));
        running--;
        return { waited: ms };
      },
    });
    const calls = [30, 10, 5, 1].map((ms) => call('slow', { ms })).join('\n');
    const { chat } = await scriptedChat([calls, 'Done.'], { tools: { slow }, maxParallelCalls: 2 });
    const events = await eventsOf(chat.stream('go'));
    const results = events.flatMap((event) => (event.type === 'call' ? [event.result] : []));
    expect(results).toEqual([30, 10, 5, 1].map((waited) => ({ waited })));
    expect(most).toBe(2);
    const parts = events.flatMap((event) =>
      event.type === 'call-part' && event.index === 3 ? [event.arguments] : [],
    );
    expect(JSON.parse(parts.join(''))).toEqual({ ms: 1 });
  });

  it('tell the model of every failure, and the turn goes on', async () => {
    const failing: Record<string, ChatTool> = {
      weather,
      throws: tool({ execute: () => Promise.reject(new Error('no network')) }),
      loops: tool({
        execute: () => {
          const loop: Record<string, unknown> = {};
          loop.loop = loop;
          return loop;
        },
      }),
      typed: tool({
        parameters: { type: 'object', properties: { n: { type: 'integer' } } },
        execute: () => 'ran',
      }),
    };
    const calls = [
      call('other', {}),
      call('throws', {}),
      call('loops', 'null'),
      call('weather', { place: 5 }),
      call('typed', { n: 'x' }),
      call('typed', '{"n": nope}'),
    ];
    const { chat, prompts } = await scriptedChat([calls.join(''), 'Sorry.'], { tools: failing });
    const { calls: made } = await chat.send('go');
    expect(made.map(({ error }) => error)).toEqual([
      'There is no function "other"; the functions are weather, throws, loops, typed.',
      'no network',
      expect.stringContaining('circular'),
      expect.stringMatching(/^The arguments are wrong: place: .*string/),
      expect.stringMatching(/^The arguments are wrong: n: /),
      expect.stringContaining('The arguments are no JSON object: "{\\"n\\": nope}'),
    ]);
    expect(made.every(({ result }) => result === undefined)).toBe(true);
    expect(prompts()[1]).toContain('{"error":"no network"}');
  });

  it('end after a number of rounds: then the model has to answer without them', async () => {
    const again = call('weather', { place: 'Oslo' });
    const { chat, prompts } = await scriptedChat([again, again, 'Enough.'], {
      tools: { weather },
      maxRounds: 2,
    });
    const { rounds, text, calls } = await chat.send('go');
    expect([rounds, text, calls.length]).toEqual([3, 'Enough.', 2]);
    expect(prompts().map((prompt) => prompt.includes('<tools>'))).toEqual([true, true, false]);
  });

  it('are cut off where they return too much', async () => {
    const tools = { long: tool({ execute: () => 'x'.repeat(5000) }) };
    const { chat } = await scriptedChat([call('long', {}), 'ok'], { tools, maxResultLength: 10 });
    await chat.send('go');
    expect(chat.messages[2]!.content).toBe(`${'x'.repeat(10)}... (4,990 more characters left out)`);
  });

  it('get a signal that is aborted with the turn, which does not wait for them', async () => {
    const seen: AbortSignal[] = [];
    const hangs = tool({ execute: (_, { signal }) => new Promise(() => seen.push(signal)) });
    const { chat } = await scriptedChat([call('hangs', {})], { tools: { hangs } });
    const abort = new AbortController();
    const turn = chat.send('go', { signal: abort.signal });
    await expect.poll(() => seen.length).toBe(1);
    abort.abort();
    await expect(turn).rejects.toThrow(/abort/);
    expect(seen[0]!.aborted).toBe(true);
    expect(chat.messages).toEqual([]);
  });

  it('are forced in the first round alone', async () => {
    const { chat, engine } = await scriptedChat([call('weather', { place: 'Rome' }), 'Sun.'], {
      tools: { weather },
    });
    await chat.send('go', { toolChoice: 'required' });
    expect(engine.requests.map(({ guide }) => guide !== undefined)).toEqual([true, false]);
  });

  const execute = () => null;
  it.each([
    [{ 'a b': { execute } }, 'tools[0].name is "a b"'],
    [{ a: { execute, inptu: z.object({}) } }, 'did you mean input?'],
    [{ a: { execute, parameters: z.object({}) } }, 'parameters is a ZodObject; it must be a JSON schema'],
    [
      { a: { execute, input: v.object({}) } },
      'tools.a.input is a schema of valibot without ~standard.jsonSchema, from which no JSON schema can be made here; give it as parameters next to it.',
    ],
    [{ a: { execute, input: z.date() } }, 'that has no JSON schema: Date cannot be represented'],
    [
      { a: { execute, parameters: { dependentRequired: {} } } },
      'tools.a.parameters cannot be checked here (',
    ],
  ])('are refused where they cannot be described or checked: %j', async (tools, words) => {
    await expect(scriptedChat([], { tools: tools as never })).rejects.toThrow(words);
  });

  it('take a Standard Schema of any library with its JSON schema beside it', async () => {
    const parameters = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const twice = tool({ input: v.object({ n: v.number() }), parameters, execute: ({ n }) => 2 * n });
    const { chat } = await scriptedChat([call('twice', { n: 4 }), 'ok'], { tools: { twice } });
    expect((await chat.send('go')).calls[0]!.result).toBe(8);
  });
});

describe('an object of a chat', () => {
  const person = z.object({ name: z.string(), born: z.string().transform(Number) });

  it('has the type of its schema, and what the schema makes of it', async () => {
    const { chat, engine } = await scriptedChat(['{"name": "Ada", "born": "1815"}']);
    const input = z.object({ name: z.string(), born: z.string() });
    const answer = await chat.send('Who?', { object: input });
    expectTypeOf(answer.object).toEqualTypeOf<{ name: string; born: string }>();
    expect(answer.object).toEqual({ name: 'Ada', born: '1815' });
    expect(engine.requests[0]!.guide).toMatchObject({ type: 'json_schema' });
    const made = await scriptedChat(['{"name": "Ada", "born": "1815"}']);
    const { object } = await made.chat.send('Who?', { object: person });
    expectTypeOf(object).toEqualTypeOf<{ name: string; born: number }>();
    expect(object).toEqual({ name: 'Ada', born: 1815 });
  });

  it('may be of a JSON schema, and come after calls', async () => {
    const { chat } = await scriptedChat([call('weather', { place: 'Oslo' }), '[1]'], { tools: { weather } });
    const { object, calls } = await chat.send('go', { object: { type: 'array' } });
    expectTypeOf(object).toEqualTypeOf<unknown>();
    expect([object, calls.length]).toEqual([[1], 1]);
  });

  it('is an error where it is cut, or is not what its schema accepts', async () => {
    const cut = [...bytesOf('{"na').map((token) => ({ tokens: [token] })), { finish: 'length' as const }];
    const { chat } = await scriptedChat([cut, '{"name": "Ada", "born": 5}']);
    await expect(chat.send('a', { object: person })).rejects.toMatchObject({
      reason: 'cut',
      message: 'The object was cut off by maxTokens, or by the context, after 4 characters.',
    });
    await expect(chat.send('a', { object: person })).rejects.toMatchObject({
      reason: 'mismatch',
      message: expect.stringContaining('not what its schema accepts: born: '),
    });
    expect(chat.messages).toEqual([]);
  });
});

describe('a saved chat', () => {
  it('goes on where it was, as plain JSON, with its calls', async () => {
    const first = await scriptedChat([call('weather', { place: 'Oslo' }), 'Rain.'], {
      system: 'Be brief.',
      tools: { weather },
    });
    await first.chat.send('Weather?');
    const saved: unknown = JSON.parse(JSON.stringify(first.chat.save()));
    expect(saved).toMatchObject({ kind: 'skein-chat', version: 1, model: 'toy' });
    const again = await scriptedChat(['Yes.'], { saved, tools: { weather } });
    expect(again.chat.messages).toEqual(first.chat.messages);
    await again.chat.send('Sure?');
    await first.chat.send('Sure?');
    expect(again.prompts()[0]).toBe(first.prompts()[2]);
    const other = await scriptedChat([], { saved, system: 'Be long.' });
    expect(other.chat.messages[0]).toEqual({ role: 'system', content: 'Be long.' });
    expect(other.chat.messages).toHaveLength(5);
  });

  const good = { kind: 'skein-chat', version: 1, messages: [] };
  it.each([
    ['{}', 'saved is a text; it must be the object, which JSON.parse makes of it.'],
    [null, 'saved is null; it must be what save() of a chat returned.'],
    [{ ...good, kind: 'other' }, 'saved has kind "other"'],
    [{ ...good, version: 2 }, 'saved has version 2; this Skein reads version 1.'],
    [{ ...good, messages: 5 }, 'saved has messages 5; it must be a list of messages.'],
    [{ ...good, messages: [{ role: 'user' }] }, 'The saved chat is damaged: '],
  ])('is refused with a sentence: %j', async (saved, words) => {
    await expect(scriptedChat([], { saved })).rejects.toThrow(words);
  });

  it('may be what the terminal wrote', async () => {
    const messages = [{ role: 'user', content: 'a' }];
    const saved = { ...good, model: 'x', settings: { temperature: 1 }, messages };
    expect((await scriptedChat([], { saved })).chat.messages).toEqual(messages);
  });
});
