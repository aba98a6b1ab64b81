import { describe, expect, it } from 'vitest';
import type { StoredResponse } from '../../../../../src/server/openai/responses/response-store.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { say, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal, storeOf } from './support.js';

const input = 'Hi';
const json = async (response: Response): Promise<Any> => response.json();

describe('stored responses', () => {
  it('are shown and forgotten by their ids', async () => {
    const toy = toyServer(() => say('Paris'));
    const response = await create(toy, { input });
    expect(await json(await toy.get(`${PATH}/${response.id}`))).toEqual(response);
    const deleted = await toy.app.request(`${PATH}/${response.id}`, { method: 'DELETE' });
    expect(await json(deleted)).toEqual({ id: response.id, object: 'response', deleted: true });
    for (const [path, method] of [
      [response.id, 'GET'],
      [response.id, 'DELETE'],
      [`${response.id}/input_items`, 'GET'],
      [`${response.id}/cancel`, 'POST'],
    ] as const) {
      const answer = await toy.app.request(`${PATH}/${path}`, { method });
      expect(answer.status, path).toBe(404);
      expect((await json(answer)).error.code, path).toBe('response_not_found');
    }
  });

  it('are not kept where the request says so', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = await create(toy, { input, store: false });
    expect((await toy.get(`${PATH}/${id}`)).status).toBe(404);
  });

  it('are gone on with, without the instructions of before', async () => {
    const toy = toyServer(() => say('Paris'));
    const first = await create(toy, { instructions: 'Be brief.', input: 'Capital?' });
    const second = await create(toy, { previous_response_id: first.id, input: 'Sure?' });
    expect(second.previous_response_id).toBe(first.id);
    expect(promptText(toy)).toBe('<user>Capital?</><assistant>Paris</><user>Sure?</><assistant>');
    await toy.app.request(`${PATH}/${first.id}`, { method: 'DELETE' });
    await create(toy, { previous_response_id: second.id, instructions: 'Shout.', input: 'And?' });
    expect(promptText(toy)).toBe(
      '<system>Shout.</><user>Capital?</><assistant>Paris</><user>Sure?</><assistant>Paris</><user>And?</><assistant>',
    );
    expect(await refusal(toy, { previous_response_id: first.id, input })).toMatchObject({ status: 404 });
  });

  it('lend their items by reference', async () => {
    const toy = toyServer(() => say('Paris'));
    const first = await create(toy, { input: 'Capital?' });
    const reference = { type: 'item_reference', id: first.output[0].id };
    await create(toy, { input: [reference, { role: 'user', content: 'Sure?' }] });
    expect(promptText(toy)).toBe('<assistant>Paris</><user>Sure?</><assistant>');
  });

  it('list their input a page at a time, in both orders', async () => {
    const toy = toyServer(() => say('Paris'));
    const first = await create(toy, { input: 'One' });
    const { id } = await create(toy, {
      previous_response_id: first.id,
      input: [
        { role: 'user', content: 'Two', id: 'msg_two' },
        { role: 'user', content: 'Three' },
      ],
    });
    const list = async (query = '') => json(await toy.get(`${PATH}/${id}/input_items${query}`));
    const texts = ({ data }: Any) => data.map(({ content }: Any) => content[0].text);
    expect(texts(await list())).toEqual(['Three', 'Two', 'Paris', 'One']);
    const page = await list('?order=asc&limit=3');
    expect(texts(page)).toEqual(['One', 'Paris', 'Two']);
    expect(page).toMatchObject({
      object: 'list',
      has_more: true,
      first_id: page.data[0].id,
      last_id: 'msg_two',
    });
    expect(page.data[2]).toMatchObject({ type: 'message', role: 'user', content: [{ type: 'input_text' }] });
    const rest = await list('?order=asc&limit=3&after=msg_two');
    expect(texts(rest)).toEqual(['Three']);
    expect(rest.has_more).toBe(false);
    for (const query of ['?limit=0', '?limit=x', '?order=up', '?beyond=1', '?after=msg_nine']) {
      const answer = await toy.get(`${PATH}/${id}/input_items${query}`);
      expect([400, 404], query).toContain(answer.status);
      expect((await json(answer)).error.param, query).toBe(/\?(\w+)/.exec(query)![1]);
    }
  });
});

describe('responses of another API key', () => {
  const apiKeys = new ApiKeys([
    { name: 'a', key: 'ka', weight: 1 },
    { name: 'b', key: 'kb', weight: 1 },
  ]);
  const by = (key: string) => ({ headers: { 'x-api-key': key } });

  it('are not there, like unknown ones', async () => {
    const toy = toyServer(() => say('Paris'), { apiKeys });
    const response = await json(await toy.post(PATH, { input }, by('ka')));
    const itemId = response.output[0].id;
    for (const [method, path, body] of [
      ['GET', response.id],
      ['DELETE', response.id],
      ['GET', `${response.id}/input_items`],
      ['POST', `${response.id}/cancel`],
      ['POST', '', { input, previous_response_id: response.id }],
      ['POST', '', { input: [{ type: 'item_reference', id: itemId }] }],
    ] as const) {
      const ask = async (id: string) => {
        const named = (text: string) => text.replaceAll(response.id, id).replaceAll(itemId, id);
        const init = {
          method,
          headers: { ...by('kb').headers, 'content-type': 'application/json' },
          ...(body && { body: named(JSON.stringify(body)) }),
        };
        const answer = await toy.app.request(named(path === '' ? PATH : `${PATH}/${path}`), init);
        return [
          answer.status,
          (await answer.text()).replaceAll(id, 'ID').replace(/"request_id":"[^"]+"/, ''),
        ];
      };
      const theirs = await ask(
        body && 'previous_response_id' in body ? response.id : body ? itemId : response.id,
      );
      expect(theirs[0], `${method} ${path}`).toBe(404);
      expect(theirs).toEqual(await ask('resp_unknown'));
    }
    expect(await json(await toy.get(`${PATH}/${response.id}`, by('ka')))).toEqual(response);
    const next = await toy.post(PATH, { input, previous_response_id: response.id }, by('ka'));
    expect(next.status).toBe(200);
  });

  it('cannot be shown, listed or cancelled while they are made', async () => {
    const toy = toyServer(() => [{ tokens: [104] }, { waitMs: 10_000 }, { finish: 'stop' }], { apiKeys });
    const answer = await toy.post(PATH, { input, stream: true }, by('ka'));
    const reader = answer.body!.getReader();
    const id = /"id":"(resp_\w+)"/.exec(Buffer.from((await reader.read()).value!).toString())![1];
    for (const [method, path] of [
      ['GET', `${PATH}/${id}`],
      ['GET', `${PATH}/${id}/input_items`],
      ['POST', `${PATH}/${id}/cancel`],
      ['POST', `/v1/requests/${id}/cancel`],
    ] as const) {
      expect((await toy.app.request(path, { method, ...by('kb') })).status, path).toBe(404);
    }
    expect(toy.engine.active).toBe(1);
    const cancelling = toy.app.request(`${PATH}/${id}/cancel`, { method: 'POST', ...by('ka') });
    while (!(await reader.read()).done);
    expect((await cancelling).status).toBe(200);
  });
});

describe('a response that is cancelled', () => {
  const slow = () => toyServer(() => [{ tokens: [104] }, { waitMs: 10_000 }, { finish: 'stop' }]);

  it('ends with what it has, for who reads its stream too', async () => {
    const toy = slow();
    const answer = await toy.post(PATH, { input, stream: true });
    await expect.poll(() => toy.engine.active).toBe(1);
    const copy = answer.clone();
    const reader = answer.body!.getReader();
    const id = /"id":"(resp_\w+)"/.exec(Buffer.from((await reader.read()).value!).toString())![1];
    expect(await json(await toy.get(`${PATH}/${id}`))).toMatchObject({ status: 'in_progress', usage: null });
    const events = readEvents(copy);
    const drain = (async () => {
      while (!(await reader.read()).done);
    })();
    const cancelled = await json(await toy.app.request(`${PATH}/${id}/cancel`, { method: 'POST' }));
    expect(cancelled).toMatchObject({
      id,
      status: 'cancelled',
      output: [{ status: 'incomplete', content: [{ text: 'h' }] }],
    });
    await drain;
    expect((await events).at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'cancelled' },
    });
    expect(await json(await toy.get(`${PATH}/${id}`))).toEqual(cancelled);
    expect(toy.engine.active).toBe(0);
  });

  it('may be cancelled as any request, by its id', async () => {
    const toy = slow();
    const answer = await toy.post(PATH, { input, stream: true });
    const copy = answer.clone();
    const reader = answer.body!.getReader();
    const id = /"id":"(resp_\w+)"/.exec(Buffer.from((await reader.read()).value!).toString())![1];
    const cancelled = await toy.post(`/v1/requests/${id}/cancel`, '');
    expect(await json(cancelled)).toEqual({ id, object: 'request.cancelled', cancelled: 1 });
    while (!(await reader.read()).done);
    const last = { status: 'cancelled', output: [{ status: 'incomplete', content: [{ text: 'h' }] }] };
    expect((await readEvents(copy)).at(-1)).toMatchObject({ type: 'response.incomplete', response: last });
    expect(await json(await toy.get(`${PATH}/${id}`))).toMatchObject(last);
    expect(toy.engine.active).toBe(0);
  });

  it('is one that is being made', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = await create(toy, { input });
    const answer = await toy.app.request(`${PATH}/${id}/cancel`, { method: 'POST' });
    expect(answer.status).toBe(400);
    expect((await json(answer)).error.message).toContain("'completed'");
  });
});

describe('the store of responses', () => {
  const A = { name: 'a' };
  const B = { name: 'b' };
  const stored = (id: string, text: string, previous: StoredResponse | null = null): StoredResponse => ({
    response: { id, output: [], instructions: text } as never,
    input: [],
    previous,
  });

  it('lets go of what was used longest ago when there are too many', async () => {
    const { store, place } = storeOf({ maxValues: 2 });
    const own = store.of(A);
    for (const id of ['a', 'b']) await own.put(stored(id, ''));
    await own.get('a');
    await own.put(stored('c', ''));
    await expect(own.get('b')).rejects.toThrow("There is no response 'b'");
    expect((await own.get('a')).response.id).toBe('a');
    expect(place.size).toBe(2);
  });

  it('holds no more bytes than it may, those of conversations included', async () => {
    const { store, place } = storeOf({ maxBytes: 5000 });
    const own = store.of(A);
    let last: StoredResponse | null = null;
    for (let turn = 0; turn < 30; turn++) {
      last = stored(`r${turn}`, 'x'.repeat(400), last);
      await own.put(last);
      expect(place.bytes).toBeLessThanOrEqual(5000);
    }
    // A conversation longer than the limit is not kept at all; shorter ones are.
    await expect(own.get('r29')).rejects.toThrow();
    await own.put(stored('small', ''));
    expect(place.size).toBeGreaterThan(0);
    await own.delete('small');
    const { bytes, size } = place;
    expect(size === 0 ? bytes : 1).toBe(size === 0 ? 0 : 1);
  });

  it('counts each response once, however often it is put', async () => {
    const { store, place } = storeOf();
    const own = store.of(A);
    await own.put(stored('a', 'x'));
    const { bytes } = place;
    await own.put(stored('a', 'x'));
    expect([place.size, place.bytes]).toEqual([1, bytes]);
    await own.delete('a');
    expect([place.size, place.bytes]).toEqual([0, 0]);
  });

  it('takes from the key that keeps the most where there are too many, not from others', async () => {
    const { store, place } = storeOf({ maxValues: 4 });
    await store.of(B).put(stored('b', ''));
    for (const id of ['a1', 'a2', 'a3', 'a4', 'a5']) await store.of(A).put(stored(id, ''));
    expect((await store.of(B).get('b')).response.id).toBe('b');
    await expect(store.of(A).get('a2')).rejects.toThrow("There is no response 'a2'");
    expect((await store.of(A).get('a3')).response.id).toBe('a3');
    expect(place.size).toBe(4);
  });

  it('takes bytes from the key that keeps the most', async () => {
    const { store, place } = storeOf({ maxBytes: 12_000 });
    await store.of(B).put(stored('b', 'x'.repeat(3600)));
    for (let i = 0; i < 20; i++) {
      await store.of(A).put(stored(`a${i}`, 'x'.repeat(1600)));
      expect(place.bytes).toBeLessThanOrEqual(12_000);
    }
    expect((await store.of(B).get('b')).response.id).toBe('b');
    expect((await store.of(A).get('a19')).response.id).toBe('a19');
  });

  it('makes room where others hold the memory', async () => {
    const ledger = new MemoryLedger({ limit: 32_000 });
    const { store, place } = storeOf({}, ledger.open('stored'));
    const own = store.of(A);
    for (let i = 0; i < 30; i++) await own.put(stored(`a${i}`, 'x'.repeat(1600)));
    const { size } = place;
    expect(size).toBeGreaterThan(1);
    expect(ledger.held).toBe(place.bytes);
    expect(ledger.held).toBeLessThanOrEqual(28_000);
    const others = ledger.open('request');
    expect(others.resize(28_000 - ledger.held)).toBe(true);
    await own.put(stored('larger', 'x'.repeat(3600)));
    expect((await own.get('larger')).response.id).toBe('larger');
    expect(place.size).toBeLessThan(size);
    expect(ledger.held).toBe(place.bytes + others.bytes);
  });

  it('has nothing of a key for another', async () => {
    const { store } = storeOf();
    await store.of(A).put(stored('a', 'x'));
    await store.of(B).put({ ...stored('a', 'mine'), input: [] });
    await expect(store.of(B).delete('other')).rejects.toThrow();
    expect(store.of(A).activeResponse('a')).toBeNull();
  });
});

describe('a conversation that is too long', () => {
  const turn = (role: string, letter: string) => ({ role, content: letter.repeat(40) });
  const long = [
    turn('system', 's'),
    turn('user', 'a'),
    turn('assistant', 'b'),
    turn('user', 'c'),
    turn('assistant', 'd'),
    turn('user', 'e'),
  ];

  it('loses its oldest messages but those of the system, where truncation is auto', async () => {
    const toy = toyServer(() => say('x'));
    expect(await refusal(toy, { input: long })).toMatchObject({
      code: 'context_length_exceeded',
      param: 'input',
    });
    await create(toy, { input: long, truncation: 'auto' });
    const prompt = promptText(toy);
    expect(prompt).toMatch(/^<system>s+<\/>/);
    expect(prompt).toMatch(/<user>e+<\/><assistant>$/);
    expect(prompt).not.toContain('aaa');
    // The conversation is kept as far as there is room.
    expect(prompt).toContain('ddd');
  });

  it('is refused where its last message alone is too long', async () => {
    const toy = toyServer(() => say('x'));
    const error = await refusal(toy, { input: [...long, turn('user', 'f'.repeat(10))], truncation: 'auto' });
    expect(error).toMatchObject({ status: 400, code: 'context_length_exceeded' });
  });

  it('keeps no output of a call that is gone', async () => {
    const { truncated } = await import('../../../../../src/generation/truncation.js');
    const messages = ['user', 'assistant', 'tool', 'tool', 'user'].map((role, i) => ({
      role,
      content: String(i),
    }));
    const asked: string[] = [];
    const kept = await truncated(messages, async (candidate) => {
      asked.push(candidate.map(({ content }) => content).join(''));
      return candidate.length <= 3;
    });
    expect(kept.map(({ content }) => content)).toEqual(['4']);
    for (const candidate of asked) expect(['01234', '1234', '4']).toContain(candidate);
  });
});
