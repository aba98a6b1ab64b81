import { expect, it, vi } from 'vitest';
import { SharedPlace } from '../../../../../src/server/openai/responses/shared-place.js';
import type { Script, Step } from '../../../support/fake-engine.js';
import { describeWithNats } from '../../../support/test-nats.js';
import { say, type ToyServer } from '../../../support/toy-server.js';
import { sharedServers } from '../../batches/shared-servers.js';
import { asKey } from '../../batches/support.js';
import { type Any, create, PATH, promptText, readEvents, refusal } from './support.js';

const { serverOf, newName, stores } = sharedServers();

const CONVERSATIONS = '/v1/conversations';
const KEYS = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
const json = async (response: Response): Promise<Any> => response.json();
const read = async (toy: ToyServer, id: string) => json(await toy.get(`${PATH}/${id}`));
const textOf = ({ output }: Any): string => output[0].content[0].text;
const ended = (toy: ToyServer, id: string) =>
  expect
    .poll(async () => (await read(toy, id)).status, { timeout: 60_000, interval: 50 })
    .not.toBe('in_progress');
/** An answer that stops after its first tokens. */
const stuck = (text: string): Step[] => [...say(text).slice(0, -1), { waitMs: 1e8 }, ...say('never')];

describeWithNats('servers that share their responses', () => {
  it('show, go on with, refer to and forget what another one has made', async () => {
    const name = newName();
    const [one, other] = [
      await serverOf(name, 'one', () => say('first')),
      await serverOf(name, 'other', () => say('next')),
    ];
    const first = await create(one.server, { input: 'Hi', metadata: { a: 'b' } });
    expect(await read(other.server, first.id)).toEqual(first);
    const second = await create(other.server, { input: 'And?', previous_response_id: first.id });
    expect(promptText(other.server)).toContain('first');
    const items = await json(await one.server.get(`${PATH}/${second.id}/input_items?order=asc`));
    expect(items.data.map(({ content }: Any) => content[0].text)).toEqual(['Hi', 'first', 'And?']);
    const reference = { type: 'item_reference', id: first.output[0].id };
    await create(other.server, { input: [reference, { role: 'user', content: 'Sure?' }] });
    expect(promptText(other.server)).toContain('first');
    const gone = await other.server.app.request(`${PATH}/${first.id}`, { method: 'DELETE' });
    expect(gone.status).toBe(200);
    expect((await one.server.get(`${PATH}/${first.id}`)).status).toBe(404);
    expect(await refusal(other.server, { input: [reference] })).toMatchObject({ code: 'item_not_found' });
    // What went on with it keeps it.
    await create(one.server, { input: 'Third', previous_response_id: second.id });
    expect(promptText(one.server)).toContain('first');
  });

  it('have nothing of a key for another', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', undefined, KEYS);
    const other = await serverOf(name, 'other', undefined, KEYS);
    const { id } = await json(await one.server.post(PATH, { input: 'Hi' }, asKey('key-a')));
    expect((await other.server.get(`${PATH}/${id}`, asKey('key-a'))).status).toBe(200);
    expect((await other.server.get(`${PATH}/${id}`, asKey('key-b'))).status).toBe(404);
    const conversation = await json(await one.server.post(CONVERSATIONS, {}, asKey('key-a')));
    expect((await other.server.get(`${CONVERSATIONS}/${conversation.id}`, asKey('key-b'))).status).toBe(404);
  });

  it('add to one conversation at once, and lose nothing', async () => {
    const name = newName();
    const servers = [await serverOf(name, 'one'), await serverOf(name, 'other')];
    const { id } = await json(await servers[0]!.server.post(CONVERSATIONS, { metadata: { a: 'b' } }));
    const add = (index: number) =>
      servers[index % 2]!.server.post(`${CONVERSATIONS}/${id}/items`, {
        items: [{ type: 'message', role: 'user', content: `i${index}` }],
      });
    const added = await Promise.all(Array.from({ length: 6 }, (_, index) => add(index)));
    expect(added.map(({ status }) => status)).toEqual(Array(6).fill(200));
    const list = await json(await servers[1]!.server.get(`${CONVERSATIONS}/${id}/items?limit=100`));
    const texts = list.data.map(({ content }: Any) => content[0].text);
    expect(texts.sort()).toEqual(Array.from({ length: 6 }, (_, index) => `i${index}`).sort());
    const answer = await create(servers[0]!.server, { input: 'Hi', conversation: id });
    const after = await json(await servers[1]!.server.get(`${CONVERSATIONS}/${id}/items?limit=2`));
    expect(after.data[0]).toEqual(answer.output[0]);
  });

  it('let one response have its turn in a conversation, unless its server is gone', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', () => stuck('A'));
    const other = await serverOf(name, 'other');
    const { id } = await json(await other.server.post(CONVERSATIONS, {}));
    const reader = (
      await one.server.post(PATH, { input: 'Hi', conversation: id, stream: true })
    ).body!.getReader();
    await reader.read();
    expect(await refusal(other.server, { input: 'Hi', conversation: id })).toMatchObject({
      code: 'conversation_locked',
    });
    await one.presence.close();
    expect((await create(other.server, { input: 'Hi', conversation: id })).status).toBe('completed');
    await reader.cancel();
  });

  it('make room for new ones within limits that they share', async () => {
    const records = stores().records(newName());
    const presence = { id: 'x', looker: () => async () => new Set<string>(), isThere: async () => true };
    const limits = { maxValues: 16, maxBytes: 2 ** 20 };
    const places = [0, 1].map(() => new SharedPlace(records, presence, limits));
    const id = (index: number) => `resp_${String(index).padStart(48, '0')}`;
    const stored = (index: number) => ({
      response: { id: id(index), status: 'completed', output: [] } as never,
      input: [],
      previous: null,
    });
    await places[0]!.putResponse('b', stored(99));
    for (let index = 0; index < 24; index++) await places[index % 2]!.putResponse('a', stored(index));
    const kept: number[] = [];
    for (let index = 0; index < 24; index++)
      if ((await places[0]!.response('a', id(index))) !== null) kept.push(index);
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 24 - kept.length + index));
    expect(kept.length).toBeLessThanOrEqual(16);
    expect(kept.length).toBeGreaterThanOrEqual(14);
    expect(await places[1]!.response('b', id(99))).not.toBeNull();
  });

  it('tell of a record that somebody else has put there, which fails alone', async () => {
    const name = newName();
    const { server } = await serverOf(name, 'one');
    const { id } = await create(server, { input: 'Hi' });
    const records = stores().records(`${name}R`);
    const find = async () =>
      (await records.list()).find(({ key }) => key.endsWith(id) && !key.startsWith('notes'));
    const record = (await vi.waitUntil(() => find().catch(() => undefined), 60_000))!;
    const [head, ...items] = record.text.split('\n');
    const good = JSON.parse(head!);
    let { revision } = record;
    const broken = [
      '',
      'null',
      '{',
      '{}',
      '[]',
      head!,
      `${record.text}\n{}`,
      `${head}\n${items.map(() => '7').join('\n')}`,
    ];
    for (const change of [
      { response: null },
      { lists: null },
      { lists: { ...good.lists, input: 'x' } },
      { lists: { ...good.lists, input: 1e9 } },
    ])
      broken.push([JSON.stringify({ ...good, ...change }), ...items].join('\n'));
    for (const text of broken) {
      revision = (await records.put(record.key, text, revision))!;
      const response = await server.get(`${PATH}/${id}`);
      expect([response.status, (await json(response)).error.code]).toEqual([503, 'storage_failed']);
    }
    expect((await create(server, { input: 'Hi' })).status).toBe('completed');
  });
});

describeWithNats('a response in the background of servers that share them', () => {
  const ask = { input: 'Hi', background: true };

  it('is shown, followed and cancelled at another one', async () => {
    const name = newName();
    const [one, other] = [await serverOf(name, 'one', () => stuck('AB')), await serverOf(name, 'other')];
    const { id } = await create(one.server, ask);
    expect(await read(other.server, id)).toMatchObject({ id, status: 'in_progress', background: true });
    const items = await json(await other.server.get(`${PATH}/${id}/input_items`));
    expect(items.data).toHaveLength(1);
    // On a busy machine the other server may take longer than a request waits: 503, ask again.
    const cancel = () => other.server.post(`${PATH}/${id}/cancel`, {});
    let answer = await cancel();
    while (answer.status === 503) answer = await cancel();
    const cancelled = await json(answer);
    expect(cancelled).toMatchObject({ status: 'cancelled' });
    await expect.poll(() => one.server.engine.active).toBe(0);
    expect(await read(one.server, id)).toEqual(cancelled);
    const second = await create(one.server, ask);
    const deleted = await other.server.app.request(`${PATH}/${second.id}`, { method: 'DELETE' });
    expect(deleted.status).toBe(200);
    expect((await other.server.get(`${PATH}/${second.id}`)).status).toBe(404);
    await expect.poll(() => one.server.engine.active, { timeout: 20_000 }).toBe(0);
    await expect.poll(async () => (await one.server.get(`${PATH}/${second.id}`)).status).toBe(404);
    // Where NATS does not answer in time, it is asked again.
    const tasks = () =>
      stores()
        .records(`${name}R`)
        .list('tasks')
        .catch(() => null);
    await expect.poll(tasks).toEqual([]);
  });

  it('is gone on with where its server is gone, with the same answer and its place in a conversation', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', () => stuck('A'));
    const other = await serverOf(name, 'other', () => say('AB'));
    const conversation = await json(await one.server.post(CONVERSATIONS, {}));
    const first = await create(one.server, { ...ask, conversation: conversation.id });
    await one.cut();
    await ended(other.server, first.id);
    const done = await read(other.server, first.id);
    expect(done).toMatchObject({ id: first.id, created_at: first.created_at, status: 'completed' });
    expect(textOf(done)).toBe('AB');
    expect(other.server.engine.requests[0]!.seed).toBe(one.server.engine.requests[0]!.seed);
    const items = await json(await other.server.get(`${CONVERSATIONS}/${conversation.id}/items?order=asc`));
    expect(items.data.map(({ content }: Any) => content[0].text)).toEqual(['Hi', 'AB']);
    expect((await create(other.server, { input: 'Hi', conversation: conversation.id })).status).toBe(
      'completed',
    );
  });

  it('has the same events wherever they are read, also where another server goes on with them', async () => {
    const name = newName();
    const script: Script = () => stuck('One two');
    const one = await serverOf(name, 'one', script);
    const whole = 'One two three';
    const other = await serverOf(name, 'other', () => [
      { tokens: [...Buffer.from(whole.slice(0, 5))] },
      ...say(whole.slice(5)),
    ]);
    const reader = (await one.server.post(PATH, { ...ask, stream: true })).body!.getReader();
    let before = '';
    while (!before.includes('"delta":"o"')) before += new TextDecoder().decode((await reader.read()).value);
    const id = /"id":"(resp_\w+)"/.exec(before)![1]!;
    const told = before.split('\n\n').length - 1;
    // The other one has stored them as soon as it can report them.
    const stored = () => stores().contents(`${name}C`).size(id);
    await expect.poll(stored, { timeout: 20_000 }).toBe(Buffer.byteLength(before));
    const following = other.server.get(`${PATH}/${id}?stream=true`);
    await one.cut();
    const events = await readEvents(await following);
    expect(events.slice(0, told)).toEqual(
      before
        .trimEnd()
        .split('\n\n')
        .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6))),
    );
    const deltas = events.filter(({ type }) => type === 'response.output_text.delta');
    expect(deltas.map(({ delta }) => delta).join('')).toBe(whole);
    const done = await read(other.server, id);
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { id, output: done.output },
    });
    expect(new Set(events.flatMap(({ item_id }) => item_id ?? []))).toEqual(new Set([done.output[0].id]));
    const rest = await other.server.get(`${PATH}/${id}?stream=true&starting_after=${told - 1}`);
    expect(await rest.text()).toContain(`"sequence_number":${told}`);
    reader.cancel().catch(() => {});
  });
});
