import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { runCli, type SkeinProcess, startServer } from './support/skein-process.js';

const folder = temporaryFolder('skein-log-file');
const file = join(folder, 'skein.log');
let server: SkeinProcess;

beforeAll(async () => {
  mkdirSync(join(folder, 'models/bad/1'), { recursive: true });
  writeFileSync(
    join(folder, 'models/bad/config.yaml'),
    'backend: module\ninput: [{name: X, data_type: TYPE_INT32, dims: [1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [1]}]\n',
  );
  writeFileSync(
    join(folder, 'models/bad/1/model.mjs'),
    'export const execute = () => { throw new Error("no luck"); };',
  );
  const repository = ['--model-repository', join(folder, 'models')];
  server = await startServer([...repository, '--log-file', file, '--log-level', 'info', '--no-metrics']);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const linesOf = (path: string) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as { level: number; path?: string; requestId?: string; msg: string })
    : [];
const get = (path: string, id: string) => fetch(server.url + path, { headers: { 'x-request-id': id } });
const infer = () =>
  postJson(`${server.url}/v2/models/bad/infer`, {
    inputs: [{ name: 'X', datatype: 'INT32', shape: [1], data: [1] }],
  });

describe('--log-file', () => {
  it('takes the log, and leaves warnings and errors on the terminal too', async () => {
    await get('/v2/health/live', 'quiet');
    expect((await infer()).status).toBe(500);
    await expect
      .poll(() => linesOf(file).map(({ msg }) => msg))
      .toEqual(['request', 'model error', 'request failed', 'request']);
    // Read later than the file, as a pipe of another process is read when there is time.
    const terminal = () => {
      const lines = server.output().stderr.split('\n').slice(0, -1);
      return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).msg);
    };
    await expect.poll(terminal).toEqual(['model error', 'request failed']);
    expect(linesOf(file)[0]).toMatchObject({ level: 30, requestId: 'quiet', path: '/v2/health/live' });
  });

  it('is opened anew by SIGHUP when it was renamed, and goes on when it was emptied in place', async () => {
    const old = join(folder, 'skein.log.1');
    renameSync(file, old);
    await get('/v2/health/live', 'into-the-old-one');
    server.child.kill('SIGHUP');
    await expect.poll(() => existsSync(file)).toBe(true);
    await get('/v2/health/live', 'into-the-new-one');
    await expect.poll(() => linesOf(file).map(({ requestId }) => requestId)).toEqual(['into-the-new-one']);
    expect(linesOf(old).at(-1)!.requestId).toBe('into-the-old-one');
    truncateSync(file);
    await get('/v2/health/live', 'after');
    await expect.poll(() => linesOf(file).map(({ requestId }) => requestId)).toEqual(['after']);
  });

  it('is told by the protocol, by which what is logged may be changed', async () => {
    const set = async (changes: object) => (await postJson(`${server.url}/v2/logging`, changes)).json();
    expect(await set({ log_info: false })).toMatchObject({
      log_file: file,
      log_info: false,
      log_error: true,
    });
    const before = linesOf(file).length;
    await get('/v2/health/live', 'unheard');
    expect(await set({ log_info: true, log_verbose_level: 1 })).toMatchObject({ log_verbose_level: 1 });
    await get('/health', 'a-probe');
    await expect
      .poll(() =>
        linesOf(file)
          .slice(before)
          .map(({ path }) => path),
      )
      .toEqual(['/v2/logging', '/health']);
  });

  it('that cannot be written is refused before anything is loaded', async () => {
    const { code, stderr } = await runCli(['serve', '--log-file', join(folder, 'nowhere/skein.log')]);
    expect([code, stderr]).toEqual([
      2,
      `skein: The file of --log-file, ${folder}/nowhere/skein.log, cannot be written: its folder is not there.\n`,
    ]);
  });
});

it('--no-metrics leaves no route for them, and statistics as they are', async () => {
  const { status } = await get('/metrics', 'm');
  expect(status).toBe(404);
  const description = (await (await get('/openapi.json', 'd')).json()) as { paths: object };
  expect(Object.keys(description.paths)).not.toContain('/metrics');
  const stats = await (await get('/v2/models/bad/stats', 's')).json();
  expect(stats).toMatchObject({ model_stats: [{ inference_stats: { fail: { count: 1 } } }] });
});
