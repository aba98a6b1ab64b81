import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Script } from '../../support/fake-engine.js';
import { describeWithNats } from '../../support/test-nats.js';
import { say } from '../../support/toy-server.js';
import { sharedServers } from './shared-servers.js';
import { answersOf, asKey, batchOf, begin, line, until, upload } from './support.js';

const { serverOf, newName } = sharedServers();

const KEYS = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
const LINES = ['a', 'b', 'c', 'd'].map((one) => line(one));
const A = asKey('key-a');

/** An answer that does not end by itself. */
const endless: Script = () => [{ tokens: [104] }, { waitMs: 1e8 }, { finish: 'stop' }];
const firstOnly =
  (count: number): Script =>
  (request, index) =>
    index < count ? say('ok') : endless(request, index);

describeWithNats('servers that share their files', () => {
  it('show, fetch and delete what another one has taken, of its owner alone', async () => {
    const name = newName();
    const [one, other] = [
      await serverOf(name, 'one', undefined, KEYS),
      await serverOf(name, 'other', undefined, KEYS),
    ];
    const content = 'x'.repeat(90_000);
    const file = await upload(one.server, content, undefined, A);
    expect(await (await other.server.get(`/v1/files/${file.id}`, A)).json()).toEqual(file);
    expect(await (await other.server.get(`/v1/files/${file.id}/content`, A)).text()).toBe(content);
    expect(await (await other.server.get('/v1/files', A)).json()).toMatchObject({ data: [file] });
    const asB = asKey('key-b');
    expect((await other.server.get(`/v1/files/${file.id}`, asB)).status).toBe(404);
    expect(await (await other.server.get('/v1/files', asB)).json()).toMatchObject({ data: [] });
    // The bound is that of all servers: half of 300,000 bytes for one of two keys.
    await expect(upload(other.server, content, undefined, A)).rejects.toThrow(/half at most/);
    const deleted = await other.server.app.request(`/v1/files/${file.id}`, { ...A, method: 'DELETE' });
    expect(deleted.status).toBe(200);
    expect((await one.server.get(`/v1/files/${file.id}`, A)).status).toBe(404);
    expect((await one.server.get(`/v1/files/${file.id}/content`, A)).status).toBe(404);
    await upload(one.server, content, undefined, A);
  });

  it('refuse with a sentence while nothing can be reached', async () => {
    const { server, cut } = await serverOf(newName(), 'one');
    await cut();
    const response = await server.get('/v1/files');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({
      error: { code: 'storage_failed', message: expect.stringContaining('does not answer') },
    });
  });
});

describeWithNats('servers that share their batches', () => {
  it('show and cancel what another one runs, and keep its input', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', firstOnly(2));
    const other = await serverOf(name, 'other', endless);
    const { id, input_file_id } = await begin(one.server, LINES);
    const there = await until(other.server, id, ({ request_counts }) => request_counts.completed === 2);
    expect(there.status).toBe('in_progress');
    const deletion = await other.server.app.request(`/v1/files/${input_file_id}`, { method: 'DELETE' });
    expect(deletion.status).toBe(400);
    expect(await (await other.server.post(`/v1/batches/${id}/cancel`, '')).json()).toMatchObject({
      status: 'cancelling',
    });
    const ended = await until(other.server, id);
    expect(ended).toMatchObject({ status: 'cancelled', request_counts: { total: 4, completed: 2 } });
    expect((await answersOf(other.server, ended.output_file_id)).size).toBe(2);
    expect((await answersOf(one.server, ended.error_file_id)).size).toBe(2);
    expect(other.server.engine.requests).toEqual([]);
    expect((await one.server.post(`/v1/batches/${id}/cancel`, '')).status).toBe(400);
  });

  it('go on with a batch whose server is gone, and answer nothing twice', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', firstOnly(2));
    const other = await serverOf(name, 'other');
    const { id } = await begin(one.server, LINES);
    await until(other.server, id, ({ request_counts }) => request_counts.completed === 2);
    // For the others this is as if it were dead.
    await one.cut();
    const ended = await until(other.server, id);
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 4, completed: 4, failed: 0 },
    });
    expect([...(await answersOf(other.server, ended.output_file_id)).keys()].sort()).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
    expect(other.server.engine.requests).toHaveLength(2);
  });

  it('go on with a batch of one that was believed to be gone, which then writes nothing more', async () => {
    const name = newName();
    const one = await serverOf(name, 'one', firstOnly(2));
    const other = await serverOf(name, 'other');
    const { id } = await begin(one.server, LINES);
    await until(one.server, id, ({ request_counts }) => request_counts.completed === 2);
    await one.presence.close();
    const ended = await until(other.server, id);
    while (one.server.engine.active > 0) await nextTurn();
    const output = await answersOf(other.server, ended.output_file_id);
    expect(output.size).toBe(4);
    expect(await batchOf(one.server, id)).toEqual(ended);
    expect(await answersOf(one.server, ended.output_file_id)).toEqual(output);
  });
});
