import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openedState, sealedState } from '../../../../../src/server/openai/responses/compaction-state.js';
import { keptMessages } from '../../../../../src/server/openai/responses/retained-items.js';
import type { Step } from '../../../support/fake-engine.js';
import { templatedCodec } from '../../../support/toy-codec.js';
import { say, type ToyServer, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal } from './support.js';

const ASKED = 'about to be replaced by a summary';
const TOLD = 'has been replaced by this summary';

/** A server whose model sums up when it is asked to. */
function server(summary: Step[] = say('Geese.'), model: object = {}): ToyServer {
  const toy: ToyServer = toyServer(() => (promptText(toy).includes(ASKED) ? summary : say('Honk')), {
    model: { maxInputLen: 6000, maxSeqLen: 8000, ...model },
  });
  return toy;
}

const user = (content: string) => ({ type: 'message', role: 'user', content });
const assistant = (content: string) => ({ type: 'message', role: 'assistant', content });
const talk = [user('Which bird?'), assistant('A goose.'), user('Why?')];

async function compact(toy: ToyServer, body: object): Promise<Any> {
  const response = await toy.post(`${PATH}/compact`, body);
  expect(response.status).toBe(200);
  return response.json();
}

describe('POST /v1/responses/compact', () => {
  it('answers with the messages of the user, and a summary that only the server reads', async () => {
    const toy = server();
    const compacted = await compact(toy, { input: [{ role: 'system', content: 'Be brief.' }, ...talk] });
    expect(promptText(toy)).toContain('<assistant>A goose.</><user>Why?</><user>');
    expect(compacted).toEqual({
      id: expect.stringMatching(/^resp_/),
      object: 'response.compaction',
      created_at: expect.any(Number),
      output: [
        expect.objectContaining({ role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] }),
        expect.objectContaining({ role: 'user', content: [{ type: 'input_text', text: 'Which bird?' }] }),
        expect.objectContaining({ role: 'user', content: [{ type: 'input_text', text: 'Why?' }] }),
        { type: 'compaction', id: expect.stringMatching(/^cmp_/), encrypted_content: expect.any(String) },
      ],
      usage: expect.objectContaining({ output_tokens: 6 }),
    });
    expect(JSON.stringify(compacted)).not.toContain('Geese');
    await create(toy, { input: [...compacted.output, user('And now?')] });
    const prompt = promptText(toy);
    expect(prompt).toMatch(/^<system>Be brief.<\/><user>Which bird\?<\/><user>Why\?<\/><user>/);
    expect(prompt).toContain(TOLD);
    expect(prompt).toMatch(/Geese\.<\/><user>And now\?<\/><assistant>$/);
  });

  it('compacts stored responses, and its summary is kept by the next compaction', async () => {
    const toy = server();
    const first = await create(toy, { input: 'Which bird?' });
    const once = await compact(toy, { previous_response_id: first.id, instructions: 'Shout.' });
    expect(promptText(toy)).toMatch(/^<system>Shout.<\/><user>Which bird\?<\/><assistant>Honk<\/>/);
    await compact(toy, { input: [...once.output, assistant('So.')] });
    expect(promptText(toy)).toContain('Geese.</><assistant>So.</>');
  });

  it('leaves out the oldest of a conversation that does not fit', async () => {
    const toy = server(say('S'), { maxInputLen: 1200, maxSeqLen: 1600 });
    const long = Array.from({ length: 20 }, (_, index) => user(`${index} ${'honk '.repeat(20)}`));
    const { output } = await compact(toy, { input: long });
    expect(promptText(toy)).not.toContain('<user>0 ');
    expect(promptText(toy)).toContain('<user>19 ');
    // Those that stay verbatim are the newest, a quarter of the context (of four bytes a token) at most.
    const texts = output.slice(0, -1).map(({ content }: Any) => content[0].text);
    expect(texts.at(-1)).toMatch(/^19 /);
    expect(texts.join('').length).toBeLessThan(1600);
  });

  it('shows the model the tools, of which none is called', async () => {
    const codec = templatedCodec('{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}');
    const toy = server(say('Geese.'), { codec });
    const tools = [{ type: 'function', name: 'weather', strict: true }];
    await create(toy, { input: talk, tools });
    const answered = promptText(toy);
    await compact(toy, { input: talk, tools });
    expect(promptText(toy).startsWith(answered.replace(/<assistant>$/, ''))).toBe(true);
    expect(toy.engine.requests.at(-1)!.guide).toBeUndefined();
  });

  it('refuses what it cannot compact', async () => {
    const toy = server();
    const refused = async (body: object) => {
      const response = await toy.post(`${PATH}/compact`, body);
      return { status: response.status, ...((await response.json()) as Any).error };
    };
    expect(await refused({})).toMatchObject({ status: 400, param: 'input' });
    expect(await refused({ previous_response_id: 'resp_1' })).toMatchObject({ status: 404 });
    expect(await refused({ input: talk, model: 'none' })).toMatchObject({ status: 404, param: 'model' });
    const foreign = { type: 'compaction', encrypted_content: 'gAAA' };
    const of = { status: 400, param: 'input[0].encrypted_content', code: 'invalid_encrypted_content' };
    expect(await refused({ input: [foreign, ...talk] })).toMatchObject(of);
    expect(await refusal(toy, { input: [foreign, ...talk] })).toMatchObject(of);
    expect(await refusal(toy, { input: Array(65).fill(foreign) })).toMatchObject({
      status: 400,
      param: 'input',
    });
  });

  it('of an empty summary says that there is none', async () => {
    const toy = server([{ finish: 'stop' }]);
    const { output } = await compact(toy, { input: talk });
    await create(toy, { input: output });
    expect(promptText(toy)).toContain('(There is no summary.)');
  });
});

describe('a compaction_trigger', () => {
  const trigger = { type: 'compaction_trigger' };

  it('makes the response one item of type compaction, as Codex wants it', async () => {
    const toy = server();
    const body = { input: [...talk, trigger], stream: true, store: false };
    const events = await readEvents(await toy.post(PATH, body));
    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.completed',
    ]);
    const { item } = events[3];
    expect(item).toEqual({
      type: 'compaction',
      id: events[2].item.id,
      encrypted_content: expect.any(String),
    });
    const { response } = events[4];
    expect(response).toMatchObject({ status: 'completed', output: [item] });
    expect(response.usage.output_tokens).toBe(6);
    await create(toy, { input: [user('Why?'), item, user('Go on')] });
    expect(promptText(toy)).toMatch(/^<user>Why\?<\/><user>.*Geese\.<\/><user>Go on<\/><assistant>$/s);
  });

  it('replaces what the server keeps of the conversation before it', async () => {
    const toy = server();
    const first = await create(toy, { input: talk });
    const second = await create(toy, { previous_response_id: first.id, input: [trigger] });
    await create(toy, { previous_response_id: second.id, input: 'Go on' });
    expect(promptText(toy)).toMatch(/^<user>Which bird\?<\/><user>Why\?<\/><user>.*Geese\.<\/><user>Go on/s);
    expect(promptText(toy)).not.toContain('Honk');
  });

  it('has to be the last item', async () => {
    expect(await refusal(server(), { input: [trigger, ...talk] })).toMatchObject({
      status: 400,
      param: 'input[0]',
    });
  });

  it('is cancelled without an item', async () => {
    const toy = server([{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')]);
    const { id } = await create(toy, { input: [...talk, trigger], background: true });
    await expect.poll(() => toy.engine.active).toBe(1);
    const cancelled = (await (await toy.post(`${PATH}/${id}/cancel`, {})).json()) as Any;
    expect(cancelled.status).toBe('cancelled');
    expect(cancelled.output.filter(({ type }: Any) => type === 'compaction')).toEqual([]);
    await expect.poll(() => toy.engine.active).toBe(0);
  });
});

describe('context_management', () => {
  const management = (compact_threshold: number | null) => ({
    context_management: [{ type: 'compaction', compact_threshold }],
  });

  it('compacts a conversation that is too long, and then answers it', async () => {
    const toy = server();
    const input = [{ role: 'developer', content: 'Be brief.' }, ...talk];
    const events = await readEvents(await toy.post(PATH, { input, ...management(10), stream: true }));
    const { response } = events.at(-1);
    expect(response.output.map(({ type }: Any) => type)).toEqual(['compaction', 'message']);
    expect(events.map(({ type }) => type).slice(0, 5)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.output_item.done',
      'response.output_item.added',
    ]);
    const [asked, answered] = [0, 1].map((index) => promptText(toy, index)) as [string, string];
    // The summary is of what was before the last message, which stays after it.
    expect(asked).toContain('A goose.</><user>This conversation');
    expect(answered).toMatch(
      /^<system>Be brief.<\/><user>Which bird\?<\/><user>.*Geese\.<\/><user>Why\?<\/>/s,
    );
    expect(response.usage.output_tokens).toBe(6 + 4);
    expect(response.usage.input_tokens).toBe(asked.length + answered.length + 2);
    // The next turn has the whole conversation in the item, whether the client sends the old items again or not.
    const next = [...response.output, user('More')];
    await create(toy, { input: next });
    const prompt = promptText(toy);
    expect(prompt).toBe(`${answered}Honk</><user>More</><assistant>`);
    await create(toy, { input: [...input, ...next] });
    expect(promptText(toy)).toBe(prompt);
    await create(toy, { previous_response_id: response.id, input: 'More' });
    expect(promptText(toy)).toBe(prompt);
  });

  it('leaves shorter ones alone, and those with nothing to sum up', async () => {
    const toy = server();
    for (const body of [
      { input: talk, ...management(1000) },
      { input: talk, ...management(null) },
      { input: 'Hi', ...management(1) },
      { input: talk, context_management: [] },
    ]) {
      const { output } = await create(toy, body);
      expect(output.map(({ type }: Any) => type)).toEqual(['message']);
    }
    expect(toy.engine.requests.length).toBe(4);
  });

  it('answers a conversation that would not fit', async () => {
    const toy = server(say('S'), { maxInputLen: 1500, maxSeqLen: 2000 });
    const input = [user('Begin'), assistant('honk '.repeat(500)), user('Go on')];
    expect(await refusal(toy, { input })).toMatchObject({ code: 'context_length_exceeded' });
    const { output } = await create(toy, { input, ...management(null) });
    expect(output.map(({ type }: Any) => type)).toEqual(['compaction', 'message']);
  });

  it('that is cancelled while it sums up begins no answer', async () => {
    const toy = server([{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')]);
    const { id } = await create(toy, { input: talk, ...management(1), background: true });
    await expect.poll(() => toy.engine.active).toBe(1);
    await toy.post(`${PATH}/${id}/cancel`, {});
    await expect.poll(() => toy.engine.active).toBe(0);
    expect(toy.engine.requests.length).toBe(1);
  });

  it.each([
    [[{ type: 'clearing' }], 'context_management[0].type'],
    [[{ type: 'compaction', compact_threshold: 0 }], 'context_management[0].compact_threshold'],
    [[{ type: 'compaction' }, { type: 'compaction' }], 'context_management'],
  ])('%j is refused', async (context_management, param) => {
    expect(await refusal(server(), { input: talk, context_management })).toMatchObject({
      status: 400,
      param,
    });
  });
});

const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const message = fc.record({ role: fc.constantFrom('user' as const, 'system' as const), text });

describe('the state of a compaction', () => {
  it('is read as it was written', () => {
    const messages = fc.array(message, { maxLength: 5 });
    const state = fc.record({ summary: text, before: fc.option(messages), after: messages });
    fc.assert(
      fc.property(state, (one) => {
        expect(openedState(sealedState(one))).toEqual(one);
      }),
    );
  });

  it('that nobody here has written is none', () => {
    const content = (plain: string) => `skein-compaction1:${Buffer.from(plain).toString('base64')}`;
    expect(openedState(content('0 2 |  | \nab'))).toEqual({ summary: 'ab', before: null, after: [] });
    for (const wrong of ['0 3 |  | \nab', '0 1 |  | \nab', '2 2 |  | \nab', '0 2 | x2 | \nab', '', 'x']) {
      expect(openedState(content(wrong)), wrong).toBe(null);
    }
    expect(openedState(`skein1:${Buffer.from('0 2 |  | \nab').toString('base64')}`)).toBe(null);
    fc.assert(
      fc.property(fc.string(), (plain) => {
        openedState(content(plain));
      }),
    );
  });
});

describe('messages that stay', () => {
  it('are the newest, within the limit', () => {
    const messages = fc.array(message, { maxLength: 8 });
    fc.assert(
      fc.property(messages, fc.nat(40), fc.nat(8), (all, maxTokens, most) => {
        const kept = keptMessages(all, maxTokens, most);
        expect(kept.length).toBeLessThanOrEqual(most);
        const whole = kept.filter((one) => all.includes(one));
        const bytes = whole.reduce((sum, one) => sum + Buffer.byteLength(one.text), 0);
        expect(bytes).toBeLessThanOrEqual(4 * maxTokens);
        // A message that was cut is the oldest, and its characters are whole.
        expect(whole).toEqual(
          kept.length === 0 ? [] : all.slice(-kept.length).slice(kept.length - whole.length),
        );
        expect(kept.length - whole.length).toBeLessThanOrEqual(1);
        for (const one of kept) expect(one.text).not.toContain('\ufffd');
      }),
    );
  });

  it('that were cut keep their beginning and their end', () => {
    const long = { text: `begin${'-'.repeat(100)}end` };
    expect(keptMessages([long], 5, 1)).toEqual([{ text: 'begin-----\n[...]\n-------end' }]);
  });
});
