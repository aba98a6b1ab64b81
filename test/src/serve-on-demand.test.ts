import { copyFileSync, cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { freshFolders } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';
import { warmCli } from './support/warm-cli.js';

const makeFolder = freshFolders('skein-on-demand');
const started = startedServers();
const runCli = warmCli();

/** A folder with two models that generate and one that embeds. */
function filled(): string {
  const folder = makeFolder();
  cpSync(tinyModelPath('gqa'), join(folder, 'tiny'), { recursive: true });
  cpSync(tinyModelPath('bert-mean'), join(folder, 'vectors'), { recursive: true });
  copyFileSync(join(tinyModelPath('gguf'), 'tiny-llama.gguf'), join(folder, 'geese.gguf'));
  writeFileSync(join(folder, 'broken.gguf'), 'no model');
  return folder;
}

const open = (...flags: string[]) =>
  startServer(['--models-dir', filled(), '--kv-cache-tokens', '2048', ...flags]);

// biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
const post = async (server: SkeinProcess, path: string, body: object): Promise<any> => {
  const response = await postJson(`${server.url}${path}`, body);
  return { status: response.status, ...((await response.json()) as object) };
};
const raw = { prompt: 'ab', raw: true, stream: false, options: { num_predict: 2, temperature: 0 } };

async function namesIn(server: SkeinProcess, path: string): Promise<string[]> {
  const { models } = (await (await fetch(`${server.url}${path}`)).json()) as { models: { name: string }[] };
  return models.map(({ name }) => name);
}

describe('skein serve --models-dir', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await open();
  });
  afterAll(async () => {
    expect((await server.stop()).code).toBe(0);
  });

  it('unloads a model where a request says so, and says what is wrong with one that cannot be loaded', async () => {
    await post(server, '/api/generate', { model: 'tiny', ...raw, keep_alive: 0 });
    await expect.poll(() => namesIn(server, '/api/ps')).toEqual([]);
    expect(
      await post(server, '/api/generate', { model: 'tiny', stream: false, keep_alive: -1 }),
    ).toMatchObject({
      done_reason: 'load',
    });
    expect(await namesIn(server, '/api/ps')).toEqual(['tiny:latest']);
    expect(await post(server, '/api/chat', { model: 'tiny', keep_alive: 0 })).toMatchObject({
      done_reason: 'unload',
    });
    await expect.poll(() => namesIn(server, '/api/ps')).toEqual([]);
    expect(await post(server, '/api/generate', { model: 'broken', ...raw })).toEqual({
      status: 500,
      error: expect.stringMatching(/^The model 'broken' cannot be loaded: (?!.*skein-on-demand)/),
    });
    expect(await post(server, '/v1/completions', { model: 'broken', prompt: 'a' })).toMatchObject({
      status: 500,
      error: { param: 'model', code: 'model_not_loaded' },
    });
    expect((await post(server, '/api/generate', { model: 'none', ...raw })).status).toBe(404);
    expect((await post(server, '/v1/completions', { model: 'none', prompt: 'a' })).status).toBe(404);
    const shown = await post(server, '/api/show', { model: 'geese' });
    expect(shown).toMatchObject({
      details: { format: 'gguf', family: 'llama' },
      capabilities: ['completion', 'tools'],
    });
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  it('loads a model when a request of any API names it, and tells which are loaded', async () => {
    const all = "'broken', 'geese', 'tiny', 'vectors'";
    expect(await post(server, '/v1/completions', { prompt: 'ab' })).toMatchObject({
      status: 400,
      error: {
        param: 'model',
        message: `'model' is missing, and no model is loaded yet: name one. This server serves ${all}.`,
      },
    });
    expect(await post(server, '/v1/completions', { model: 'goose', prompt: 'ab' })).toMatchObject({
      status: 404,
      error: { param: 'model', message: `The model 'goose' does not exist. This server serves ${all}.` },
    });
    expect(await namesIn(server, '/api/tags')).toEqual([
      'broken:latest',
      'geese:latest',
      'tiny:latest',
      'vectors:latest',
    ]);
    expect(await namesIn(server, '/api/ps')).toEqual([]);
    const asked = [raw, raw].map((body) => post(server, '/api/generate', { model: 'tiny', ...body }));
    const [first, second] = await Promise.all(asked);
    expect(first).toMatchObject({ status: 200, model: 'tiny', done_reason: 'length', eval_count: 2 });
    expect(second.response).toBe(first.response);
    expect(first.load_duration).toBeGreaterThan(0);
    const completion = { model: 'geese:latest', prompt: 'ab', max_tokens: 2 };
    expect(await post(server, '/v1/completions', completion)).toMatchObject({ status: 200, model: 'geese' });
    const vectors = await post(server, '/v1/embeddings', { model: 'vectors', input: 'a' });
    expect(vectors.data[0].embedding.length).toBeGreaterThan(1);
    expect(await namesIn(server, '/api/ps')).toEqual(['tiny:latest', 'geese:latest', 'vectors:latest']);
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(['tiny', 'geese', 'vectors', 'broken']);
    expect((await fetch(`${server.url}/v1/models/broken`)).status).toBe(200);
    const { models } = (await (await fetch(`${server.url}/api/ps`)).json()) as {
      models: { expires_at: string; size: number; details: { family: string } }[];
    };
    const inMs = new Date(models[0]!.expires_at).getTime() - Date.now();
    expect(inMs).toBeGreaterThan(0);
    expect(inMs).toBeLessThanOrEqual(300_000);
    expect(models[0]).toMatchObject({ size: expect.any(Number), details: { family: 'llama' } });
  });

  it('keeps within its bound of memory', async () => {
    const small = await started(open('--model-memory-bytes', '1000'));
    const bytesOf = async (model: string) => {
      const answer = await post(small, '/api/generate', { model, ...raw });
      expect(answer).toEqual({
        status: 503,
        error: expect.stringMatching(/takes \d+ bytes of memory.* 1000 together/),
      });
      return Number(/takes (\d+) bytes/.exec(answer.error)![1]);
    };
    const sizes = [await bytesOf('tiny'), await bytesOf('geese')];
    await small.stop();
    // Room for either with its cache, and not for both.
    const bound = Math.max(...sizes) + Math.floor(0.4 * Math.min(...sizes));
    const server = await started(open('--model-memory-bytes', String(bound)));
    expect((await post(server, '/api/generate', { model: 'tiny', ...raw })).status).toBe(200);
    expect((await post(server, '/api/generate', { model: 'geese', ...raw })).status).toBe(200);
    expect(await namesIn(server, '/api/ps')).toEqual(['geese:latest']);
  });
});

it('skein serve --models-dir tells that it made its folder', async () => {
  const folder = join(makeFolder(), 'not', 'there');
  const server = await started(startServer(['--models-dir', folder]));
  expect(server.output().stderr).toContain(
    `the folder of --models-dir was not there and was made: ${folder}`,
  );
  expect(await namesIn(server, '/api/tags')).toEqual([]);
});

const aFile = join(tinyModelPath('gqa'), 'config.json');

it.each([
  [['--models-dir', aFile], /--models-dir, .*, cannot be made: a file of this name is there\.$/m],
  [['--models-dir', join(aFile, 'x')], /cannot be made: what should be its folder is a file\.$/m],
  [['--files-dir', aFile], /--files-dir: .* cannot be used: a file of this name is there\.$/m],
  [['--model-memory-bytes', '5'], /--model-memory-bytes needs --models-dir/],
  [['--models-dir', '.', '--keep-alive', 'soon'], /--keep-alive is "soon"; it must be a duration/],
])('skein serve %j is refused', async (flags, message) => {
  const { code, stderr } = await runCli(['serve', ...flags]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
