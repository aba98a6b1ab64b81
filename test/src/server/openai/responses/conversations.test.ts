import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../../../callbacks/token-request.js';
import type { KeptItem } from '../../../../../src/server/openai/responses/response-store.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import { say, type ToyServer, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal, storeOf } from './support.js';

const CONVERSATIONS = '/v1/conversations';
const user = (content: string, id?: string) => ({
  type: 'message',
  role: 'user',
  content,
  ...(id && { id }),
});

async function ask(toy: ToyServer, method: string, path: string, body?: object): Promise<Any> {
  const init = { method, headers: { 'content-type': 'application/json' } };
  const answer = await toy.app.request(`${CONVERSATIONS}${path}`, {
    ...init,
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, ...((await answer.json()) as Any) };
}

async function textsOf(toy: ToyServer, id: string): Promise<string[]> {
  const { data } = await ask(toy, 'GET', `/${id}/items?order=asc`);
  return data.map(({ content }: Any) => content[0].text);
}

describe('conversations', () => {
  it('are made, shown, changed and forgotten', async () => {
    const toy = toyServer(() => say('x'));
    const made = await ask(toy, 'POST', '', { metadata: { topic: 'geese' } });
    expect(made).toEqual({
      status: 200,
      id: expect.stringMatching(/^conv_[0-9a-f]{48}$/),
      object: 'conversation',
      created_at: expect.any(Number),
      metadata: { topic: 'geese' },
    });
    const path = `/${made.id}`;
    expect(await ask(toy, 'GET', path)).toEqual(made);
    expect((await ask(toy, 'POST', path, { metadata: { topic: 'ducks' } })).metadata).toEqual({
      topic: 'ducks',
    });
    expect((await ask(toy, 'POST', path, { metadata: null })).metadata).toEqual({});
    expect(await ask(toy, 'DELETE', path)).toEqual({
      ...{ status: 200, id: made.id, object: 'conversation.deleted', deleted: true },
    });
    for (const [method, more, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '', { metadata: {} }],
      ['GET', '/items'],
      ['POST', '/items', { items: [user('a')] }],
      ['GET', '/items/msg_1'],
      ['DELETE', '/items/msg_1'],
    ] as const) {
      const { status, error } = await ask(toy, method, path + more, body);
      expect([status, error.code], `${method} ${more}`).toEqual([404, 'conversation_not_found']);
    }
    // A body may be missing, as from clients that have nothing to say.
    expect((await ask(toy, 'POST', '')).metadata).toEqual({});
  });

  it('have items, a page at a time, that come and go', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = await ask(toy, 'POST', '', { items: [user('One'), user('Two', 'msg_two')] });
    const added = await ask(toy, 'POST', `/${id}/items`, { items: [user('Three'), user('Four', 'msg_two')] });
    expect(added).toMatchObject({ object: 'list', has_more: false, first_id: added.data[0].id });
    // An id stays that of one item.
    expect(added.data[1].id).not.toBe('msg_two');
    const page = await ask(
      toy,
      'GET',
      `/${id}/items?order=asc&limit=3&include[]=message.output_text.logprobs`,
    );
    expect(page).toMatchObject({ has_more: true, last_id: added.data[0].id });
    expect(page.data.map(({ content }: Any) => content[0].text)).toEqual(['One', 'Two', 'Three']);
    const rest = await ask(toy, 'GET', `/${id}/items?order=asc&after=${page.last_id}`);
    expect(rest.data).toEqual([added.data[1]]);
    expect((await ask(toy, 'GET', `/${id}/items?limit=1`)).data).toEqual([added.data[1]]);
    expect(await ask(toy, 'GET', `/${id}/items/msg_two`)).toEqual({ status: 200, ...page.data[1] });
    expect(await ask(toy, 'DELETE', `/${id}/items/msg_two`)).toMatchObject({ id, object: 'conversation' });
    expect(await ask(toy, 'DELETE', `/${id}/items/msg_two`)).toMatchObject({ status: 404 });
    expect(await textsOf(toy, id)).toEqual(['One', 'Three', 'Four']);
    for (const query of ['?limit=0', '?order=up', '?beyond=1', '?after=msg_nine'])
      expect([400, 404], query).toContain((await ask(toy, 'GET', `/${id}/items${query}`)).status);
    for (const [items, param] of [
      [[], 'items'],
      [[{ type: 'web_search' }], 'items[0].type'],
      [[{ type: 'item_reference', id: 'msg_none' }], 'items[0].id'],
    ] as const)
      expect((await ask(toy, 'POST', `/${id}/items`, { items })).error.param).toBe(param);
  });

  it('are answered, and get the items of each turn', async () => {
    const toy = toyServer(() => say('Paris'));
    const { id } = await ask(toy, 'POST', '', { items: [user('Capital?')] });
    const first = await create(toy, { conversation: id, input: 'Of France.' });
    expect(first).toMatchObject({ conversation: { id }, previous_response_id: null });
    expect(promptText(toy)).toBe('<user>Capital?</><user>Of France.</><assistant>');
    await readEvents(
      await toy.post(PATH, { conversation: { id }, input: 'Sure?', stream: true, store: false }),
    );
    expect(promptText(toy)).toMatch(/<assistant>Paris<\/><user>Sure\?<\/><assistant>$/);
    expect(await textsOf(toy, id)).toEqual(['Capital?', 'Of France.', 'Paris', 'Sure?', 'Paris']);
    const items = (await ask(toy, 'GET', `/${id}/items?order=asc`)).data;
    expect(items[2]).toEqual(first.output[0]);
    // What a response has answered stays with it, whatever becomes of the conversation.
    await ask(toy, 'DELETE', `/${id}`);
    const listed = (await (await toy.get(`${PATH}/${first.id}/input_items?order=asc`)).json()) as Any;
    expect(listed.data.map(({ content }: Any) => content[0].text)).toEqual(['Capital?', 'Of France.']);
    await create(toy, { previous_response_id: first.id, input: 'And?' });
    expect(promptText(toy)).toBe(
      '<user>Capital?</><user>Of France.</><assistant>Paris</><user>And?</><assistant>',
    );
  });

  it('lend their items by reference, and count with the input', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = await ask(toy, 'POST', '', { items: [user('Lent', 'msg_lent')] });
    await create(toy, { input: [{ type: 'item_reference', id: 'msg_lent' }] });
    expect(promptText(toy)).toBe('<user>Lent</><assistant>');
    const count = (await (
      await toy.post(`${PATH}/input_tokens`, { conversation: id, input: 'a' })
    ).json()) as Any;
    const alone = (await (await toy.post(`${PATH}/input_tokens`, { input: 'a' })).json()) as Any;
    expect(count.input_tokens).toBeGreaterThan(alone.input_tokens);
  });

  it('exclude a previous response, and have to be there', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = await create(toy, { input: 'a' });
    const both = { input: 'a', previous_response_id: id, conversation: 'conv_1' };
    expect(await refusal(toy, both)).toMatchObject({
      ...{ status: 400, param: 'previous_response_id', code: 'mutually_exclusive_parameters' },
    });
    expect(await refusal(toy, { input: 'a', conversation: id })).toMatchObject({
      ...{ status: 404, param: 'conversation', code: 'conversation_not_found' },
    });
    expect(await refusal(toy, { input: 'a', conversation: 1 })).toMatchObject({ param: 'conversation' });
    expect((await toy.get(`${PATH}/conv_1`)).status).toBe(404);
  });
});

describe('responses of one conversation', () => {
  it('come one after the other', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')]);
    const { id } = await ask(toy, 'POST', '', { items: [user('One')] });
    const running = await create(toy, { conversation: id, input: 'Two', background: true });
    const locked = { status: 400, param: 'conversation', code: 'conversation_locked' };
    expect(await refusal(toy, { conversation: id, input: 'Three' })).toMatchObject(locked);
    expect((await ask(toy, 'POST', `/${id}/items`, { items: [user('Four')] })).error.code).toBe(locked.code);
    await toy.post(`${PATH}/${running.id}/cancel`, {});
    await expect.poll(() => toy.engine.active).toBe(0);
    // A turn that was cancelled adds nothing, and the next one has its place.
    await expect
      .poll(async () => (await ask(toy, 'POST', `/${id}/items`, { items: [user('Five')] })).status)
      .toBe(200);
    expect(await textsOf(toy, id)).toEqual(['One', 'Five']);
  });

  it('in the background add their items when they are done', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 500 }, ...say('B')]);
    const { id } = await ask(toy, 'POST', '');
    await create(toy, { conversation: id, input: 'Hi', background: true });
    expect(await textsOf(toy, id)).toEqual([]);
    await expect.poll(() => textsOf(toy, id)).toEqual(['Hi', 'AB']);
  });

  it('that fail, are refused or left give their turn back', async () => {
    let index = 0;
    const toy = toyServer(() =>
      index++ === 0 ? [{ tokens: [65] }, { error: new RequestError('It broke.') }] : say('B'),
    );
    const { id } = await ask(toy, 'POST', '');
    await toy
      .post(PATH, { conversation: id, input: 'One', stream: true })
      .then((response) => response.text());
    expect(await refusal(toy, { conversation: id, input: 'Two', max_output_tokens: 9999 })).toMatchObject({
      param: 'input',
    });
    expect(await refusal(toy, { conversation: id, input: 'x'.repeat(300) })).toMatchObject({ status: 400 });
    await create(toy, { conversation: id, input: 'Three' });
    expect(await textsOf(toy, id)).toEqual(['Three', 'B']);
    const gone = new AbortController();
    gone.abort();
    await toy.post(PATH, { conversation: id, input: 'Four' }, { signal: gone.signal }).catch(() => {});
    await create(toy, { conversation: id, input: 'Five' });
    expect(await textsOf(toy, id)).toEqual(['Three', 'B', 'Five', 'B']);
  });

  it('go on where it is forgotten meanwhile', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 500 }, ...say('B')]);
    const { id } = await ask(toy, 'POST', '');
    const response = await create(toy, { conversation: id, input: 'Hi', background: true });
    await ask(toy, 'DELETE', `/${id}`);
    await expect
      .poll(async () => ((await (await toy.get(`${PATH}/${response.id}`)).json()) as Any).status)
      .toBe('completed');
    expect((await ask(toy, 'GET', `/${id}`)).status).toBe(404);
  });
});

describe('what is kept of conversations', () => {
  it('is the key’s own', async () => {
    const apiKeys = new ApiKeys([
      { name: 'a', key: 'ka', weight: 1 },
      { name: 'b', key: 'kb', weight: 1 },
    ]);
    const toy = toyServer(() => say('x'), { apiKeys });
    const by = (key: string) => ({ headers: { 'x-api-key': key } });
    const made = await toy.post(CONVERSATIONS, { items: [user('Mine', 'msg_mine')] }, by('ka'));
    const { id } = (await made.json()) as Any;
    expect((await toy.get(`${CONVERSATIONS}/${id}/items/msg_mine`, by('ka'))).status).toBe(200);
    for (const path of ['', '/items', '/items/msg_mine'])
      expect((await toy.get(`${CONVERSATIONS}/${id}${path}`, by('kb'))).status, path).toBe(404);
    for (const body of [
      { input: 'a', conversation: id },
      { input: [{ type: 'item_reference', id: 'msg_mine' }] },
    ])
      expect((await toy.post(PATH, body, by('kb'))).status).toBe(404);
  });

  it('shares the limits of responses, and the oldest makes room', async () => {
    const ledger = new MemoryLedger();
    const { store, place } = storeOf({ maxValues: 3, maxBytes: 100_000 }, ledger.open('stored'));
    const own = store.conversationsOf({ name: 'a' });
    const text = (length: number): KeptItem => ({
      type: 'message',
      role: 'user',
      id: 'msg_1',
      content: [{ type: 'input_text', text: 'x'.repeat(length) }],
    });
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await own.create({}, [text(10)])).id);
    expect(place.size).toBe(3);
    await expect(own.get(ids[0]!)).rejects.toThrow('There is no conversation');
    const before = place.bytes;
    await own.add(ids[3]!, [text(1000)]);
    expect(place.bytes - before).toBeGreaterThan(1000);
    expect(ledger.heldFor('stored')).toBe(place.bytes);
    // One conversation has a quarter at most.
    await expect(own.add(ids[3]!, [text(30_000)])).rejects.toThrow(/bytes, at most 25000 are kept/);
    await expect(own.beginTurn(ids[3]!, [text(30_000)])).rejects.toThrow(/at most 25000/);
    for (const id of ids.slice(1)) await own.delete(id);
    expect([place.size, place.bytes, ledger.heldFor('stored')]).toEqual([0, 0, 0]);
  });

  it('is so many items at most', async () => {
    const toy = toyServer(() => say('x'));
    const items = Array.from({ length: 4096 }, () => user('a'));
    const { id } = await ask(toy, 'POST', '', { items });
    const { status, error } = await ask(toy, 'POST', `/${id}/items`, { items: [user('a')] });
    expect([status, error.code]).toEqual([400, 'conversation_too_long']);
    expect(error.message).toContain('4097 items, at most 4096');
    expect(await refusal(toy, { conversation: id, input: 'a' })).toMatchObject({ param: 'conversation' });
  });
});
