import { describe, expect, it } from 'vitest';
import { ANYBODY, ApiKeys } from '../../../src/server/web/access/api-keys.js';
import { RequestRegistry } from '../../../src/server/web/request-registry.js';
import { dataFrames } from '../support/stream-frames.js';
import { toyServer } from '../support/toy-server.js';

const messages = [{ role: 'user', content: 'Hi' }];
const endless = () => [{ tokens: [65, 66] }, { waitMs: 60_000 }, { finish: 'stop' as const }];
const asked = (headers: Record<string, string>) => ({ headers });

describe('POST /v1/requests/{id}/cancel', () => {
  it('ends a stream by its X-Request-Id, with a last chunk that clients know, and frees its place', async () => {
    const toy = toyServer(endless);
    const answer = await toy.post(
      '/v1/chat/completions',
      { messages, stream: true, stream_options: { include_usage: true } },
      asked({ 'x-request-id': 'r/1' }),
    );
    const cancelled = await toy.post('/v1/requests/r%2F1/cancel', '');
    expect(cancelled.status).toBe(200);
    expect(await cancelled.json()).toEqual({ id: 'r/1', object: 'request.cancelled', cancelled: 1 });
    const frames = dataFrames(await answer.text());
    const choices = frames.flatMap((frame) => frame.choices);
    expect(choices.at(-1)).toMatchObject({ delta: {}, finish_reason: 'length', stop_reason: 'cancelled' });
    expect(frames.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 2 } });
    expect([toy.engine.active, toy.engine.cancelled]).toEqual([0, 1]);
    expect((await toy.post('/v1/requests/r%2F1/cancel', '')).status).toBe(404);
  });

  it('ends all choices of a request by the id of its answer', async () => {
    const toy = toyServer(endless);
    const answer = await toy.post('/v1/completions', { prompt: ['a', 'b'], n: 2, stream: true });
    const reader = answer.body!.getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    const { id } = dataFrames(first)[0]!;
    expect(id).toMatch(/^cmpl-/);
    expect((await toy.post(`/v1/requests/${id}/cancel`, '')).status).toBe(200);
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      rest += new TextDecoder().decode(part.value);
    }
    const ends = dataFrames(rest).flatMap((frame) => frame.choices.filter((one) => one.finish_reason));
    expect(ends.map((one) => one.stop_reason)).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled']);
    expect(rest).toContain('data: [DONE]');
    expect(toy.engine.active).toBe(0);
  });

  it('ends an answer that is not streamed with what it has', async () => {
    const toy = toyServer(endless);
    const pending = toy.post('/v1/chat/completions', { messages }, asked({ 'x-request-id': 'mine' }));
    await expect.poll(() => toy.engine.active).toBe(1);
    await expect.poll(async () => (await toy.post('/v1/requests/mine/cancel', '')).status).toBe(200);
    const answer = await pending;
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: 'AB' }, finish_reason: 'length', stop_reason: 'cancelled' }],
      usage: { completion_tokens: 2 },
    });
  });

  it('finds a request while its prompt is still being prepared, and ends it before its first token', async () => {
    const registry = new RequestRegistry();
    const caller = ANYBODY;
    let cancelled = 0;
    const answer = registry.accept(caller, 'r', async (live) => {
      await Promise.resolve();
      expect(registry.cancel('r', caller)).toBe(1);
      expect(cancelled).toBe(0);
      live.onCancel(() => cancelled++);
      expect(cancelled).toBe(1);
      live.release();
      return 'done';
    });
    expect(await answer).toBe('done');
    expect(registry.size).toBe(0);
    await expect(registry.accept(caller, 'r', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(registry.size).toBe(0);
  });

  it.each([
    ['/v1/chat/completions', { messages }],
    ['/v1/completions', { prompt: 'Hi' }],
    ['/v1/responses', { input: 'Hi' }],
  ])('ends one of %s that was cancelled before the engine had it', async (path, body) => {
    const toy = toyServer(endless);
    const pending = toy.post(path, body, asked({ 'x-request-id': 'early' }));
    // The request is read and accepted in the turns of the event loop that its cancellation takes.
    await expect.poll(async () => (await toy.post('/v1/requests/early/cancel', '')).status).toBe(200);
    const answer = await pending;
    expect([answer.status, toy.engine.active]).toEqual([200, 0]);
    expect(JSON.stringify(await answer.json())).toContain('cancelled');
  });

  it('leaves alone what another key asked for, and tells nobody of it', async () => {
    const apiKeys = new ApiKeys([
      { name: 'a', key: 'ka', weight: 1 },
      { name: 'b', key: 'kb', weight: 1 },
    ]);
    const toy = toyServer(endless, { apiKeys });
    const answer = await toy.post(
      '/v1/chat/completions',
      { messages, stream: true },
      asked({ 'x-api-key': 'ka', 'x-request-id': 'r' }),
    );
    // Neither by the id that its client chose nor by that of its answer, and as if there were none.
    const reader = answer.body!.getReader();
    const { id } = dataFrames(new TextDecoder().decode((await reader.read()).value))[0]!;
    for (const one of ['r', id, 'guessed']) {
      const refused = await toy.post(`/v1/requests/${one}/cancel`, '', asked({ 'x-api-key': 'kb' }));
      expect(refused.status).toBe(404);
      expect(await refused.json()).toMatchObject({
        error: { message: `There is no request '${one}' that is being answered.` },
      });
    }
    expect(toy.engine.active).toBe(1);
    const cancelled = await toy.post('/v1/requests/r/cancel', '', asked({ 'x-api-key': 'ka' }));
    expect(cancelled.status).toBe(200);
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      rest += new TextDecoder().decode(part.value);
    }
    expect(rest).toContain('"stop_reason":"cancelled"');
  });

  it('knows nothing of requests that have ended, were refused, or were left by their clients', async () => {
    const registry = new RequestRegistry();
    const toy = toyServer(() => [{ tokens: [65] }, { finish: 'stop' }], { requests: registry });
    await (await toy.post('/v1/chat/completions', { messages })).text();
    await toy.post('/v1/chat/completions', { messages, max_tokens: 10_000 });
    const left = toyServer(endless, { requests: registry });
    const answer = await left.post('/v1/chat/completions', { messages, stream: true });
    expect(registry.size).toBe(2);
    await answer.body!.cancel();
    await expect.poll(() => registry.size).toBe(0);
  });
});

describe('POST /v1/cache/reset', () => {
  it('says how many blocks were dropped, of all models or of one', async () => {
    const toy = toyServer(endless);
    const all = { object: 'cache.reset', dropped_blocks: 7, models: [{ model: 'toy', dropped_blocks: 7 }] };
    expect(await (await toy.post('/v1/cache/reset', '')).json()).toEqual(all);
    expect(await (await toy.post('/v1/cache/reset?model=toy', '')).json()).toEqual(all);
    expect((await toy.post('/v1/cache/reset?model=other', '')).status).toBe(404);
    expect((await toy.post('/v1/cache/reset?modle=toy', '')).status).toBe(400);
  });

  it.each([
    { what: 'the only key', admin: undefined, others: 0, statuses: [200] },
    { what: 'none of several keys', admin: undefined, others: 1, statuses: [403, 403] },
    { what: 'admins alone', admin: true, others: 1, statuses: [200, 403] },
  ])('is for $what', async ({ admin, others, statuses }) => {
    const keys = [
      { name: 'a', key: 'ka', weight: 1, admin },
      { name: 'b', key: 'kb', weight: 1 },
    ].slice(0, 1 + others);
    const toy = toyServer(endless, { apiKeys: new ApiKeys(keys) });
    for (const [index, { name, key }] of keys.entries()) {
      const answer = await toy.post('/v1/cache/reset', '', asked({ 'x-api-key': key }));
      expect(answer.status).toBe(statuses[index]);
      if (answer.status === 200) continue;
      const { error } = (await answer.json()) as { error: { message: string } };
      expect(error).toMatchObject({ type: 'permission_error', code: 'admin_key_required' });
      expect(error.message).toContain(`'${name}'`);
      expect(error.message).toContain(
        admin ? 'others are admins' : '"admin": true in the file of --api-key-file',
      );
    }
  });
});
