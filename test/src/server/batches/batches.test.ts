import {
  appendFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freshFolders } from '../../../support/fresh-folders.js';
import type { Script } from '../../support/fake-engine.js';
import { say } from '../../support/toy-server.js';
import {
  answersOf,
  asKey,
  type BatchAnswer,
  batchOf,
  begin,
  line,
  storingServer,
  storingServers,
  until,
  upload,
} from './support.js';

const freshFolder = freshFolders('skein-batches');
const serverOf = storingServers();

/** An answer that does not end by itself. */
const endless: Script = () => [{ tokens: [104] }, { waitMs: 1e8 }, { finish: 'stop' }];
/** The first `count` requests are answered, others do not end. */
const firstOnly =
  (count: number): Script =>
  (request, index) =>
    index < count ? say('ok') : endless(request, index);
const hasEnded = ({ status }: BatchAnswer) => ['completed', 'failed'].includes(status);

describe('a batch', () => {
  it('answers all lines as the route would, and tells its way', async () => {
    const server = serverOf();
    const metadata = { job: 'nightly' };
    const lines = [line('a'), '', line('b', { max_tokens: 0 }), line('c', { n: 2 })];
    const begun = await begin(server, lines, { metadata });
    expect(begun).toMatchObject({
      id: expect.stringMatching(/^batch_[0-9a-f]{32}$/),
      object: 'batch',
      endpoint: '/v1/completions',
      status: 'validating',
      completion_window: '24h',
      expires_at: (begun.created_at as number) + 86_400,
      metadata,
      output_file_id: null,
    });
    const ended = await until(server, begun.id);
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 3, completed: 2, failed: 1 },
      errors: null,
      in_progress_at: expect.any(Number),
      finalizing_at: expect.any(Number),
      completed_at: expect.any(Number),
      failed_at: null,
      usage: { input_tokens: 4, output_tokens: 6, total_tokens: 10 },
    });
    const output = await answersOf(server, ended.output_file_id);
    expect([...output.keys()].sort()).toEqual(['a', 'c']);
    expect(output.get('a')).toMatchObject({
      response: { status_code: 200, body: { object: 'text_completion', choices: [{ text: 'ok' }] } },
      error: null,
    });
    expect(output.get('a')!.response!.request_id).toMatch(/^req-/);
    const errors = await answersOf(server, ended.error_file_id);
    expect(errors.get('b')).toMatchObject({
      response: { status_code: 400, body: { error: { param: 'max_tokens' } } },
    });
    const files = (await (await server.get('/v1/files?purpose=batch_output')).json()) as { data: unknown[] };
    expect(files.data).toHaveLength(2);
  });

  it('asks behind others, and no more at once than it may', async () => {
    let most = 0;
    const server = serverOf((_, index) => {
      most = Math.max(most, server.engine.active);
      return index % 3 === 0 ? [{ waitMs: 1 }, ...say('ok')] : say('ok');
    });
    const { id } = await begin(
      server,
      Array.from({ length: 12 }, (_, i) => line(`${i}`, i === 0 ? { priority: 1 } : {})),
    );
    expect(await until(server, id)).toMatchObject({ request_counts: { completed: 12 } });
    expect(most).toBeLessThanOrEqual(2);
    const priorities = server.engine.requests.map(({ priority }) => priority);
    expect(Math.max(...priorities.map(Number))).toBeCloseTo(0.1);
    await server.post('/v1/completions', { prompt: 'x' });
    expect(server.engine.requests.at(-1)!.priority).toBe(0.5);
  });

  it('asks again where the queue was full', async () => {
    const server = serverOf(undefined, { maxActive: 1 });
    const { id } = await begin(
      server,
      Array.from({ length: 6 }, (_, i) => line(`${i}`)),
    );
    expect(await until(server, id)).toMatchObject({ request_counts: { completed: 6, failed: 0 } });
  });

  it('takes chats and responses, which are not stored', async () => {
    const server = serverOf();
    const messages = [{ role: 'user', content: 'Hi' }];
    const chat = await begin(server, [line('a', { prompt: undefined, messages }, '/v1/chat/completions')], {
      endpoint: '/v1/chat/completions',
    });
    const asked = JSON.stringify({
      custom_id: 'r',
      method: 'POST',
      url: '/v1/responses',
      body: { input: 'Hi' },
    });
    const responses = await begin(server, [asked], { endpoint: '/v1/responses' });
    expect(await until(server, chat.id)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 1 },
    });
    const { output_file_id } = await until(server, responses.id);
    const answer = (await answersOf(server, output_file_id)).get('r')!.response!.body;
    expect(answer).toMatchObject({ object: 'response', store: false });
    expect((await server.get(`/v1/responses/${answer.id}`)).status).toBe(404);
  });

  it.each<[string, string[], [string, number | null][]]>([
    ['is empty', ['', ''], [['empty_file', null]]],
    ['is no JSON', ['{', line('a')], [['invalid_line', 1]]],
    ['asks another route', [line('a'), line('b', {}, '/v1/embeddings')], [['invalid_line', 2]]],
    ['has an id twice', [line('a'), line('a')], [['duplicate_custom_id', 2]]],
    ['wants a stream', [line('a', { stream: true })], [['invalid_line', 1]]],
    ['has a long id', [line('a'.repeat(257))], [['invalid_line', 1]]],
    ['has a long line', [line('a', { prompt: 'x'.repeat(20_000) })], [['invalid_line', 1]]],
    [
      'is nested deep',
      [line('a').replace('"a"', `${'['.repeat(200)}${']'.repeat(200)}`)],
      [['invalid_line', 1]],
    ],
    ['has many faults', Array(40).fill('{'), Array.from({ length: 20 }, (_, i) => ['invalid_line', i + 1])],
  ])('whose input %s fails as a whole, with the lines', async (_, lines, expected) => {
    const server = serverOf();
    const ended = await until(server, (await begin(server, lines)).id);
    expect(ended.status).toBe('failed');
    expect(ended.errors!.data.map(({ code, line }) => [code, line])).toEqual(expected);
    expect([ended.output_file_id, ended.error_file_id]).toEqual([null, null]);
    expect(server.engine.requests).toEqual([]);
  });

  it('is refused for a file, route, window or field that cannot be', async () => {
    const server = serverOf();
    const { id } = await upload(server, line('a'), { purpose: 'user_data' });
    const asked = { input_file_id: id, endpoint: '/v1/completions', completion_window: '24h' };
    const refused = async (more: object) => {
      const response = await server.post('/v1/batches', { ...asked, ...more });
      const { error } = (await response.json()) as { error: { param: string } };
      return [response.status, error.param];
    };
    expect(await refused({})).toEqual([400, 'input_file_id']);
    expect(await refused({ input_file_id: 'file-none' })).toEqual([404, 'input_file_id']);
    expect(await refused({ endpoint: '/v1/images/generations' })).toEqual([400, 'endpoint']);
    for (const completion_window of ['soon', '0h', '15d', '24']) {
      expect(await refused({ completion_window })).toEqual([400, 'completion_window']);
    }
    expect(await refused({ metadata: { a: 1 } })).toEqual([400, 'metadata.a']);
    expect(await refused({ output_expires_after: { anchor: 'created_at', seconds: 1 } })).toEqual([
      400,
      'output_expires_after.seconds',
    ]);
    expect((await server.get('/v1/batches/batch_none')).status).toBe(404);
  });

  it('keeps what it has when it is cancelled, and its input until it has ended', async () => {
    const server = serverOf(firstOnly(2));
    const { id, input_file_id } = await begin(
      server,
      ['a', 'b', 'c', 'd', 'e'].map((one) => line(one)),
    );
    await until(server, id, ({ request_counts }) => request_counts.completed === 2);
    const deletion = () => server.app.request(`/v1/files/${input_file_id}`, { method: 'DELETE' });
    expect((await deletion()).status).toBe(400);
    const cancelling = await server.post(`/v1/batches/${id}/cancel`, '');
    expect(await cancelling.json()).toMatchObject({ cancelling_at: expect.any(Number) });
    const ended = await until(server, id);
    expect(ended).toMatchObject({
      status: 'cancelled',
      request_counts: { total: 5, completed: 2, failed: 0 },
    });
    expect((await answersOf(server, ended.output_file_id)).size).toBe(2);
    const errors = [...(await answersOf(server, ended.error_file_id)).values()];
    expect(errors.map(({ error }) => error!.code)).toEqual(Array(3).fill('batch_cancelled'));
    expect((await server.post(`/v1/batches/${id}/cancel`, '')).status).toBe(400);
    expect((await deletion()).status).toBe(200);
    expect(server.engine.active).toBe(0);
  });

  it('is listed for its key alone, the newest first', async () => {
    const keys = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
    const server = serverOf(undefined, { keys });
    const init = asKey('key-a');
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await begin(server, [line('a')], {}, init)).id);
    for (const id of ids) await until(server, id, hasEnded, init);
    const list = async (query: string, key = init) =>
      (await (await server.get(`/v1/batches${query}`, key)).json()) as {
        data: BatchAnswer[];
        has_more: boolean;
      };
    const idsOf = ({ data }: { data: BatchAnswer[] }) => data.map(({ id }) => id);
    expect(idsOf(await list(''))).toEqual(ids);
    const first = await list('?limit=2');
    expect([idsOf(first), first.has_more]).toEqual([ids.slice(0, 2), true]);
    expect(idsOf(await list(`?after=${ids[1]}`))).toEqual(ids.slice(2));
    expect(idsOf(await list('', asKey('key-b')))).toEqual([]);
    expect((await server.get(`/v1/batches/${ids[0]}`, asKey('key-b'))).status).toBe(404);
    const cancel = await server.post(`/v1/batches/${ids[0]}/cancel`, '', asKey('key-b'));
    expect(cancel.status).toBe(404);
  });

  it('fails with what it has where there is no room for its answers', async () => {
    const server = serverOf(undefined, {
      limits: { maxFileBytes: 10_000, maxBytes: 2_000, maxFiles: 10 },
      maxRequests: 1,
    });
    const ended = await until(
      server,
      (
        await begin(
          server,
          ['a', 'b', 'c', 'd', 'e', 'f'].map((one) => line(one)),
        )
      ).id,
    );
    expect(ended).toMatchObject({ status: 'failed', errors: { data: [{ code: 'storage_full' }] } });
    expect((await answersOf(server, ended.output_file_id)).size).toBe(ended.request_counts.completed);
    expect(ended.request_counts.completed).toBeGreaterThan(0);
  });
});

describe('a batch that is under way when its server ends', () => {
  const lines = ['a', 'b', 'c', 'd'].map((one) => line(one));

  /** Answers two lines, and ends. */
  async function interrupted(folder: string) {
    const first = storingServer(firstOnly(2), { folder });
    const { id } = await begin(first, lines);
    await until(first, id, ({ request_counts }) => request_counts.completed === 2);
    await first.end();
    return id;
  }
  const recordOf = (folder: string, id: string) => join(folder, 'batches', `${id}.json`);
  const change = (path: string, changes: object) =>
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...changes }));

  it('goes on with the next one, and nothing is asked twice', async () => {
    const folder = freshFolder();
    const id = await interrupted(folder);
    // The process was killed while it wrote.
    const { outputId } = JSON.parse(readFileSync(recordOf(folder, id), 'utf8')) as { outputId: string };
    appendFileSync(join(folder, 'files', outputId), '{"id":"batch_req_x","cus');
    const second = serverOf(undefined, { folder, isStarted: false });
    expect(await batchOf(second, id)).toMatchObject({ status: 'in_progress' });
    expect(second.engine.requests).toEqual([]);
    second.batches.start();
    const ended = await until(second, id);
    expect(ended).toMatchObject({
      status: 'completed',
      request_counts: { total: 4, completed: 4, failed: 0 },
    });
    expect(second.engine.requests).toHaveLength(2);
    expect([...(await answersOf(second, ended.output_file_id)).keys()].sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(ended.usage).toMatchObject({ input_tokens: 8 });
    expect(readdirSync(join(folder, 'files'))).toHaveLength(4);
    expect(second.files.account.all.files).toBe(2);
  });

  it('expires with what it has', async () => {
    const folder = freshFolder();
    const id = await interrupted(folder);
    change(recordOf(folder, id), { expiresAt: 1_700_000_000 });
    const second = serverOf(undefined, { folder });
    const ended = await until(second, id);
    expect(ended).toMatchObject({
      status: 'expired',
      expired_at: expect.any(Number),
      request_counts: { completed: 2 },
    });
    const errors = [...(await answersOf(second, ended.error_file_id)).values()];
    expect(errors.map(({ error }) => error!.code)).toEqual(['batch_expired', 'batch_expired']);
    expect(second.engine.requests).toEqual([]);
  });

  it('is cancelled where it was being cancelled, and waits where its key is gone', async () => {
    const folder = freshFolder();
    const id = await interrupted(folder);
    change(recordOf(folder, id), { status: 'cancelling' });
    const second = serverOf(undefined, { folder });
    expect(await until(second, id)).toMatchObject({ status: 'cancelled', request_counts: { completed: 2 } });
    const other = freshFolder();
    const waiting = await interrupted(other);
    change(recordOf(other, waiting), { owner: 'gone' });
    const third = serverOf(undefined, { folder: other });
    expect((await third.get(`/v1/batches/${waiting}`)).status).toBe(404);
    for (const { engine } of [second, third]) expect(engine.requests).toEqual([]);
    expect(JSON.parse(readFileSync(recordOf(other, waiting), 'utf8'))).toMatchObject({
      status: 'in_progress',
    });
  });

  describe('with a record that somebody has changed', () => {
    const SECRET = '{"custom_id":"secret"}\n';
    const changes: [string, object][] = [
      ['an output outside', { outputId: '../../secret' }],
      ['errors outside', { errorsId: '../../secret' }],
      ['an input outside', { inputFileId: '../../secret' }],
      ['an absolute path', { outputId: '/tmp/secret' }],
      ['an id of its own', { id: '../../secret' }],
      ['one file for both', { errorsId: `file-${'0'.repeat(32)}`, outputId: `file-${'0'.repeat(32)}` }],
      ['a route that batches cannot ask', { endpoint: '/v1/cache/reset' }],
      ['a status that there is not', { status: 'running' }],
      ['counts that are none', { counts: null }],
      ['faults that are none', { faults: 7 }],
      ['a time that is none', { times: { in_progress_at: 'soon' } }],
      ['metadata that are none', { metadata: [1] }],
    ];

    it.each(changes)('names %s: there is no such batch, and nothing outside is touched', async (_, more) => {
      const folder = freshFolder();
      const id = await interrupted(folder);
      const secret = join(folder, '..', 'secret');
      for (const path of [secret, join(folder, 'secret')]) writeFileSync(path, SECRET);
      change(recordOf(folder, id), more);
      const second = serverOf(undefined, { folder });
      expect((await second.get(`/v1/batches/${id}`)).status).toBe(404);
      expect(await (await second.get('/v1/batches')).json()).toMatchObject({ data: [] });
      await second.end();
      expect(second.engine.requests).toEqual([]);
      for (const path of [secret, join(folder, 'secret')]) expect(readFileSync(path, 'utf8')).toBe(SECRET);
    });

    it('whose output is a link outside fails, and nothing is written there', async () => {
      const folder = freshFolder();
      const id = await interrupted(folder);
      const { outputId } = JSON.parse(readFileSync(recordOf(folder, id), 'utf8')) as { outputId: string };
      const secret = join(folder, 'secret');
      writeFileSync(secret, SECRET);
      rmSync(join(folder, 'files', outputId));
      symlinkSync(secret, join(folder, 'files', outputId));
      const second = serverOf(undefined, { folder });
      const { status, errors } = await until(second, id);
      expect(status).toBe('failed');
      expect(errors!.data[0]!.message).not.toContain(folder);
      expect(readFileSync(secret, 'utf8')).toBe(SECRET);
    });

    it('that is a link, or longer than any, is none', async () => {
      const folder = freshFolder();
      const id = await interrupted(folder);
      const record = recordOf(folder, id);
      const text = readFileSync(record, 'utf8');
      renameSync(record, join(folder, 'elsewhere.json'));
      symlinkSync(join(folder, 'elsewhere.json'), record);
      const second = serverOf(undefined, { folder });
      expect((await second.get(`/v1/batches/${id}`)).status).toBe(404);
      await second.end();
      rmSync(record);
      writeFileSync(record, text + ' '.repeat(2 ** 20));
      const third = serverOf(undefined, { folder });
      expect((await third.get(`/v1/batches/${id}`)).status).toBe(404);
    });

    it('names files of another API key: it does not run', async () => {
      const folder = freshFolder();
      const keys = ['a', 'b'].map((name) => ({ name, key: `key-${name}`, weight: 1 }));
      const first = storingServer(undefined, { folder, keys });
      const own = await begin(first, lines, {}, asKey('key-a'));
      await until(first, own.id, undefined, asKey('key-a'));
      await first.end();
      change(recordOf(folder, own.id), { owner: 'b', status: 'in_progress' });
      const second = serverOf(undefined, { folder, keys });
      expect((await second.get('/v1/batches', asKey('key-b'))).status).toBe(200);
      await second.end();
      expect(second.engine.requests).toEqual([]);
    });
  });

  it('lets the requests under way end first', async () => {
    const folder = freshFolder();
    const first = storingServer(() => [{ waitMs: 1000 }, ...say('ok')], { folder, maxRequests: 2 });
    const { id } = await begin(first, lines);
    await until(first, id, () => first.engine.active === 2);
    expect(await first.batches.drain(60_000)).toBe(true);
    await first.batches.close();
    expect(first.engine.requests).toHaveLength(2);
    expect(first.engine.cancelled).toBe(0);
    const second = serverOf(undefined, { folder });
    expect(await until(second, id)).toMatchObject({ status: 'completed', request_counts: { completed: 4 } });
    expect(second.engine.requests).toHaveLength(2);
  });
});
