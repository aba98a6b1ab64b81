import { describe, expect, it } from 'vitest';
import { sealedState } from '../../../../../src/server/openai/responses/compaction-state.js';
import { EventLog } from '../../../../../src/server/openai/responses/event-log.js';
import { OwnStore } from '../../../../../src/server/openai/responses/own-store.js';
import type {
  KeptItem,
  StoredItem,
  StoredResponse,
} from '../../../../../src/server/openai/responses/response-store.js';
import { itemSize } from '../../../../../src/server/openai/responses/stored-size.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { RequestMemory } from '../../../../../src/server/web/memory/request-memory.js';
import { say, type ToyServer, toyServer } from '../../../support/toy-server.js';
import { type Any, PATH, storeOf } from './support.js';

const CONVERSATIONS = '/v1/conversations';
const owner = { name: 'a' };

/** Sends a body, and returns the answer with its status. */
async function ask(toy: ToyServer, path: string, body: object): Promise<Any> {
  const response = await toy.post(path, body);
  return { ...((await response.json()) as object), status: response.status };
}

async function conversationOf(toy: ToyServer, items: readonly object[]): Promise<string> {
  return (await ask(toy, CONVERSATIONS, { items })).id;
}

const references = (id: string, count: number) =>
  Array.from({ length: count }, () => ({ type: 'item_reference', id }));

function message(id: string, text: string): StoredItem {
  return { type: 'message', id, role: 'user', content: [{ type: 'input_text', text }] };
}

/** A response with an output, as the store has it. */
function stored(id: string, input: string, previous: StoredResponse | null, output: KeptItem[] = []) {
  const response = { id, output } as unknown as StoredResponse['response'];
  return { response, input: [message(`in_${id}`, input)], previous } satisfies StoredResponse;
}

describe('what a request takes from stored state', () => {
  const readers = [
    [PATH, 'input'],
    [`${PATH}/compact`, 'input'],
    [`${PATH}/input_tokens`, 'input'],
    [CONVERSATIONS, 'items'],
  ] as const;

  it.each(readers)('meets the limit of a body before it is read: %s', async (path, field) => {
    const toy = toyServer(() => say('x'), { maxBodyBytes: 5000 });
    await conversationOf(toy, [{ id: 'long', role: 'user', content: 'x'.repeat(1000) }]);
    const { status, error } = await ask(toy, path, { [field]: references('long', 9) });
    expect([status, error.code, error.param]).toEqual([413, 'conversation_too_long', `${field}[4].id`]);
    expect(error.message).toMatch(/ has \d+ bytes, at most 5000 are taken, as of a body\.$/);
    expect(toy.engine.requests).toHaveLength(0);
  });

  it('meets it where items are put into a conversation', async () => {
    const toy = toyServer(() => say('x'), { maxBodyBytes: 5000 });
    const id = await conversationOf(toy, [{ id: 'long', role: 'user', content: 'x'.repeat(1000) }]);
    const { status } = await ask(toy, `${CONVERSATIONS}/${id}/items`, { items: references('long', 5) });
    expect(status).toBe(413);
    expect((await ask(toy, `${CONVERSATIONS}/${id}/items`, { items: references('long', 3) })).status).toBe(
      200,
    );
  });

  it('is counted by all of a request together', async () => {
    const toy = toyServer(() => say('x'), { maxBodyBytes: 5000 });
    const long = { role: 'user', content: 'x'.repeat(2000) };
    const id = await conversationOf(toy, [{ id: 'long', ...long }]);
    const count = (body: object) => ask(toy, `${PATH}/input_tokens`, body);
    expect(await count({ conversation: id, input: references('long', 1) })).toMatchObject({ status: 200 });
    const refused = await count({ conversation: id, input: references('long', 2) });
    expect(refused).toMatchObject({ status: 413, error: { param: 'input[1].id' } });
    for (let i = 0; i < 2; i++) await ask(toy, `${CONVERSATIONS}/${id}/items`, { items: [long] });
    const { status, error } = await count({ conversation: id, input: 'a' });
    expect([status, error.param]).toEqual([413, 'conversation']);
  });

  it('has as many values as a body at most, tools of items included', async () => {
    const toy = toyServer(() => say('x'));
    const tools = Array.from({ length: 500 }, (_, i) => ({ type: 'function', name: `tool_${i}` }));
    await conversationOf(toy, [{ id: 'found', type: 'tool_search_output', call_id: 'c', tools }]);
    const { status, error } = await ask(toy, `${PATH}/input_tokens`, { input: references('found', 512) });
    expect([status, error.code]).toEqual([400, 'conversation_too_long']);
    expect(error.message).toContain('holds more than 500000 values');
  });

  it('has as many items as a body at most', async () => {
    const toy = toyServer(() => say('x'));
    const items = Array.from({ length: 4096 }, (_, i) => ({ id: `m${i}`, role: 'user', content: '' }));
    const conversation = await conversationOf(toy, items);
    const { status, error } = await ask(toy, `${PATH}/input_tokens`, {
      conversation,
      input: references('m0', 1),
    });
    expect([status, error.param]).toEqual([400, 'input[0].id']);
    expect(error.message).toContain('has 4097 items, at most 4096 are taken');
  });

  it('has as many compactions as a body, references resolved', async () => {
    const toy = toyServer(() => say('x'));
    const encrypted_content = sealedState({ summary: 'a', before: null, after: [] });
    await conversationOf(toy, [{ id: 'cmp', type: 'compaction', encrypted_content }]);
    for (const [path, field] of readers) {
      const { status, error } = await ask(toy, path, { [field]: references('cmp', 65) });
      expect([status, error.param], path).toEqual([400, field]);
      expect(error.message).toContain('65 items of type compaction, at most 64');
    }
  });

  it('counts the responses before one, but not those that a compaction stands for', async () => {
    const { store } = storeOf();
    const memory = new RequestMemory(new MemoryLedger().open('request'), Number.POSITIVE_INFINITY);
    const own = () => new OwnStore(store, { caller: { ...owner } as never, memory }, 5000);
    const first = stored('resp_1', 'x'.repeat(2000), null);
    const second = stored('resp_2', 'y'.repeat(2000), first);
    const third = stored('resp_3', 'z'.repeat(2000), second);
    const encrypted_content = sealedState({ summary: 'a', before: [], after: [] });
    const compacted = stored('resp_4', 'a', third, [{ type: 'compaction', id: 'cmp', encrypted_content }]);
    const last = stored('resp_5', 'b', compacted);
    for (const one of [first, second, third, compacted, last]) await store.of(owner).put(one);
    const ids = async (id: string) => (await own().previous(id)).told.map((item) => item.id);
    expect(await ids('resp_2')).toEqual(['in_resp_1', 'in_resp_2']);
    await expect(ids('resp_3')).rejects.toThrow(/bytes, at most 5000 are taken/);
    expect(await ids('resp_4')).toEqual(['cmp']);
    expect(await ids('resp_5')).toEqual(['cmp', 'in_resp_5']);
  });
});

describe('memory for what a request takes from stored state', () => {
  it('is held until the request is done', async () => {
    const ledger = new MemoryLedger({ limit: 1_000_000 });
    const held: number[] = [];
    const script = () => {
      held.push(ledger.heldFor('request'));
      return say('x');
    };
    const toy = toyServer(script, { ledger });
    await conversationOf(toy, [{ id: 'long', role: 'user', content: 'x'.repeat(20_000) }]);
    const last = { role: 'user', content: 'a' };
    for (const count of [1, 4]) {
      const input = [...references('long', count), last];
      expect((await ask(toy, PATH, { input, truncation: 'auto', store: false })).status).toBe(200);
    }
    expect(held[1]! - held[0]!).toBeGreaterThan(3 * 3 * 20_000);
    expect(ledger.heldFor('request')).toBe(0);
  });

  it('is refused where others hold it, and where it would never be there', async () => {
    const ledger = new MemoryLedger({ limit: 4_000_000 });
    const toy = toyServer(() => say('x'), { ledger });
    const id = await conversationOf(toy, [{ id: 'long', role: 'user', content: 'x'.repeat(100_000) }]);
    const never = await ask(toy, `${PATH}/input_tokens`, { input: references('long', 20) });
    expect([never.status, never.error.code]).toEqual([413, 'request_too_large']);
    const other = ledger.open('request');
    expect(other.resize(3_300_000)).toBe(true);
    const body = { input: references('long', 2) };
    expect(await ask(toy, `${PATH}/input_tokens`, body)).toMatchObject({
      status: 429,
      error: { code: 'memory_full' },
    });
    expect(other.resize(3_850_000)).toBe(true);
    for (const path of [`${CONVERSATIONS}/${id}/items`, `${CONVERSATIONS}/${id}/items/long`])
      expect((await toy.get(path)).status, path).toBe(429);
    other.release();
    expect((await toy.get(`${CONVERSATIONS}/${id}/items`)).status).toBe(200);
  });

  it('is held while stored items, responses and events are read', async () => {
    const ledger = new MemoryLedger();
    const toy = toyServer(() => say('x'.repeat(50)), { ledger });
    const conversation = await conversationOf(toy, [{ id: 'one', role: 'user', content: 'x'.repeat(1000) }]);
    const made = await toy.post(PATH, { input: 'a', background: true, stream: true });
    const response = /resp_\w+/.exec(await made.text())![0];
    expect(ledger.heldFor('request')).toBe(0);
    for (const path of [
      `${CONVERSATIONS}/${conversation}/items`,
      `${CONVERSATIONS}/${conversation}/items/one`,
      `${PATH}/${response}`,
      `${PATH}/${response}?stream=true`,
      `${PATH}/${response}/input_items`,
    ]) {
      const answer = await toy.get(path);
      expect(ledger.heldFor('request'), path).toBeGreaterThan(500);
      await answer.text();
      expect(ledger.heldFor('request'), path).toBe(0);
    }
  });

  it('of events is kept until their last reader has left', () => {
    const log = new EventLog();
    const leave = log.follow(() => {});
    let isUnread = false;
    log.append('data: 1\n\n');
    log.whenUnread(() => {
      isUnread = true;
    });
    log.end();
    expect(isUnread).toBe(false);
    leave();
    expect(isUnread).toBe(true);
  });
});

describe('an item of the store', () => {
  it('is found by its id as long as something has it', async () => {
    const { store } = storeOf();
    const [conversations, responses] = [store.conversationsOf(owner), store.of(owner)];
    const [one, two] = [
      await conversations.create({}, [message('m', 'one')]),
      await conversations.create({}, [message('m', 'two')]),
    ];
    const text = async () => ((await responses.findItem('m')) as Any)?.content[0].text;
    expect(await text()).toBe('one');
    expect(await store.of({ name: 'b' }).findItem('m')).toBeNull();
    await conversations.delete(one.id);
    expect(await text()).toBe('two');
    await conversations.add(two.id, [message('n', 'new')]);
    await conversations.removeItem(two.id, 'm');
    expect(await text()).toBeUndefined();
    expect(await responses.findItem('n')).not.toBeNull();
    await responses.put(stored('resp_1', 'a', null, [message('m', 'output')]));
    expect(await text()).toBe('output');
    await responses.put(stored('resp_1', 'a', null));
    expect(await text()).toBeUndefined();
  });

  it('is gone with what made room for others', async () => {
    const { store } = storeOf({ maxValues: 1 });
    await store.of(owner).put(stored('resp_1', 'a', null, [message('m', 'x')]));
    await store.of(owner).put(stored('resp_2', 'a', null, [message('n', 'x')]));
    const own = store.of(owner);
    expect([await own.findItem('m'), (await own.findItem('n'))?.id]).toEqual([null, 'n']);
    await store.of(owner).put(stored('resp_2', 'x'.repeat(70 * 2 ** 20), null, [message('n', 'x')]));
    expect(await store.of(owner).findItem('n')).toBeNull();
  });

  it('counts as long as the model is told it', () => {
    const call = (input: string) =>
      itemSize({ type: 'custom_tool_call', id: 'c', call_id: 'c', name: 'f', input, status: 'completed' });
    const plain = call('aaaa').bytes;
    for (const [input, added] of [
      ['a"\\a', 2],
      ['\u0001\u0002', 2 * 5 - 2],
      ['\u{1f9a2}', 0],
      ['\ud800a', 3],
    ] as const)
      expect(call(input).bytes - plain, JSON.stringify(input)).toBe(added);
    expect(itemSize(message('m', '\u0001\u0002')).bytes).toBe(itemSize(message('m', 'ab')).bytes);
  });
});
