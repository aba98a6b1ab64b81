import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../../../callbacks/token-request.js';
import { ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { MemoryLedger } from '../../../../../src/server/web/memory/held-memory.js';
import type { Step } from '../../../support/fake-engine.js';
import { say, type ToyServer, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, readEvents, refusal } from './support.js';

const ask = { input: 'Hi', background: true };
const slow = (...steps: Step[]): Step[] => [{ tokens: [65] }, { waitMs: 300 }, ...steps];

async function read(toy: ToyServer, id: string): Promise<Any> {
  return (await toy.get(`${PATH}/${id}`)).json();
}

const ended = (toy: ToyServer, id: string) =>
  expect.poll(async () => (await read(toy, id)).status).not.toBe('in_progress');

describe('a response in the background', () => {
  it('is answered at once, and read when it is done', async () => {
    const ledger = new MemoryLedger();
    const toy = toyServer(() => slow(...say('B')), { ledger });
    const first = await create(toy, ask);
    expect(first).toMatchObject({ status: 'in_progress', background: true, output: [], usage: null });
    await ended(toy, first.id);
    const done = await read(toy, first.id);
    expect(done).toMatchObject({ status: 'completed', output: [{ content: [{ text: 'AB' }] }] });
    const next = await create(toy, { input: 'And?', previous_response_id: first.id });
    expect(next.status).toBe('completed');
    // What the requests held is given back, and what is stored counts by itself.
    await expect.poll(() => ledger.heldFor('request')).toBe(0);
    expect(ledger.heldFor('stored')).toBeGreaterThan(0);
  });

  it('can be cancelled', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')]);
    const { id } = await create(toy, ask);
    await expect.poll(async () => (await read(toy, id)).output.length).toBe(1);
    const cancelled = (await (await toy.post(`${PATH}/${id}/cancel`, {})).json()) as Any;
    expect(cancelled).toMatchObject({ status: 'cancelled', output: [{ content: [{ text: 'A' }] }] });
    await expect.poll(async () => (await read(toy, id)).status).toBe('cancelled');
    await expect.poll(() => toy.engine.active).toBe(0);
  });

  it('is cancelled and forgotten by a DELETE', async () => {
    const ledger = new MemoryLedger();
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')], { ledger });
    const { id } = await create(toy, ask);
    await expect.poll(async () => (await read(toy, id)).output.length).toBe(1);
    const deleted = await toy.app.request(`${PATH}/${id}`, { method: 'DELETE' });
    expect(await deleted.json()).toEqual({ id, object: 'response', deleted: true });
    expect((await toy.get(`${PATH}/${id}`)).status).toBe(404);
    await expect.poll(() => toy.engine.active).toBe(0);
    await expect.poll(() => ledger.heldFor('request')).toBe(0);
    expect(ledger.heldFor('stored')).toBe(0);
    expect((await toy.get(`${PATH}/${id}`)).status).toBe(404);
  });

  it('tells readers of its events the end where it is forgotten', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 10_000 }, ...say('B')]);
    const reader = (await toy.post(PATH, { ...ask, stream: true })).body!.getReader();
    let text = '';
    const more = async () => {
      const { done, value } = await reader.read();
      text += new TextDecoder().decode(value);
      return !done;
    };
    while (!text.includes('output_text.delta')) await more();
    const id = /"id":"(resp_\w+)"/.exec(text)![1]!;
    await toy.app.request(`${PATH}/${id}`, { method: 'DELETE' });
    while (await more());
    expect(text).toContain('event: response.incomplete');
    expect((await toy.get(`${PATH}/${id}`)).status).toBe(404);
  });

  it('that fails is kept, with its error', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { error: new RequestError('It broke.') }]);
    const { id } = await create(toy, ask);
    await ended(toy, id);
    expect(await read(toy, id)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'It broke.' },
    });
  });

  it('is refused like any other', async () => {
    const toy = toyServer(() => say('x'));
    expect(await refusal(toy, { ...ask, store: false })).toMatchObject({ param: 'background' });
    expect(await refusal(toy, { ...ask, max_output_tokens: 9999 })).toMatchObject({
      status: 400,
      param: 'input',
    });
    const full = toyServer(() => say('x'), { maxActive: 0 });
    expect(await refusal(full, ask)).toMatchObject({ status: 429 });
  });

  it('is found with its own key alone', async () => {
    const keys = ['a', 'b'].map((name) => ({ name, key: name, weight: 1 }));
    const toy = toyServer(() => say('x'), { apiKeys: new ApiKeys(keys) });
    const as = (key: string) => ({ headers: { 'x-api-key': key } });
    const { id } = (await (await toy.post(PATH, { ...ask, stream: true }, as('a'))).text().then((text) => {
      return JSON.parse(/data: (.*)/.exec(text)![1]!).response;
    })) as Any;
    expect((await toy.get(`${PATH}/${id}`, as('a'))).status).toBe(200);
    expect((await toy.get(`${PATH}/${id}?stream=true`, as('b'))).status).toBe(404);
  });
});

describe('the events of a response in the background', () => {
  it('can be read again, from any of them on', async () => {
    const toy = toyServer(() => slow(...say('BC')));
    const events = await readEvents(await toy.post(PATH, { ...ask, stream: true }));
    expect(events.at(-1)).toMatchObject({ type: 'response.completed' });
    const { id } = events[0].response;
    const again = await readEvents(await toy.get(`${PATH}/${id}?stream=true`));
    expect(again).toEqual(events);
    const text = await (await toy.get(`${PATH}/${id}?stream=true&starting_after=3`)).text();
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(events.slice(4).map((event) => event.sequence_number));
    expect(await (await toy.get(`${PATH}/${id}?stream=true&starting_after=999`)).text()).toBe('');
  });

  it('come to a reader that joins while it is made, whoever has left', async () => {
    const toy = toyServer(() => slow({ tokens: [66] }, { waitMs: 300 }, ...say('C')));
    const left = await toy.post(PATH, { ...ask, stream: true });
    const reader = left.body!.getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    const { id } = JSON.parse(/data: (.*)/.exec(first)![1]!).response as Any;
    await reader.cancel();
    const events = await readEvents(await toy.get(`${PATH}/${id}?stream=true`));
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { output: [{ content: [{ text: 'ABC' }] }] },
    });
    expect(toy.engine.cancelled).toBe(0);
  });

  it('tell an error at their end', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { error: new RequestError('It broke.') }]);
    const events = await readEvents(await toy.post(PATH, { ...ask, stream: true }));
    expect(events.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed']);
  });

  it('are kept of no other response', async () => {
    const toy = toyServer(() => say('x'));
    for (const fields of [{ background: true }, {}]) {
      const { id } = await create(toy, { input: 'Hi', ...fields });
      await ended(toy, id);
      const response = await toy.get(`${PATH}/${id}?stream=true`);
      expect(response.status).toBe(400);
      expect(((await response.json()) as Any).error.param).toBe('stream');
    }
    expect((await toy.get(`${PATH}/resp_0?stream=true`)).status).toBe(404);
  });
});
