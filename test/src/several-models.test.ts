import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseExposition } from '../../tools/monitoring/exposition.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import {
  runCli,
  type SkeinProcess,
  startFakeServer,
  startServer,
  testCacheDir,
} from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';

const folder = temporaryFolder('skein-models');
const started = startedServers();

const path = tinyModelPath('gqa');

async function complete(server: SkeinProcess, fields: object, signal: AbortSignal | null = null) {
  const asked = { prompt: 'ab', max_tokens: 24, temperature: 0, ignore_eos: true, ...fields };
  const response = await postJson(`${server.url}/v1/completions`, asked, { signal });
  const body = (await response.json()) as {
    model: string;
    choices: { text: string }[];
    error: { message: string };
  };
  return { status: response.status, model: body.model, text: body.choices?.[0]?.text, error: body.error };
}

const health = async (server: SkeinProcess, query = '') => {
  const response = await fetch(`${server.url}/health${query}`);
  return [response.status, await response.json()] as const;
};

describe('several models in one server', () => {
  it('answer the same beside each other also where one is native and one is not', async () => {
    const config = join(folder, 'executors.yaml');
    const common = `model: ${path}, weights: f32, kvCacheTokens: 4096`;
    writeFileSync(
      config,
      `models:\n  - { name: fast, executor: native, ${common} }\n  - { name: slow, executor: wasm, ${common} }\n`,
    );
    const server = await started(startServer(['--config', config]));
    expect((await health(server))[1]).toMatchObject({
      models: { fast: { executor: 'native' }, slow: { executor: 'wasm' } },
    });
    const long = { model: 'slow', prompt: 'one two three '.repeat(20) };
    const alone = [await complete(server, { model: 'fast' }), await complete(server, long)];
    const together = await Promise.all(
      Array.from({ length: 12 }, (_, i) => complete(server, i % 2 === 0 ? { model: 'fast' } : long)),
    );
    for (const [i, { status, text }] of together.entries())
      expect([status, text]).toEqual([200, alone[i % 2]!.text]);
    expect((await server.stop()).code).toBe(0);
  });

  it('answer under their names and aliases, the same as each alone, also where both are busy', async () => {
    const config = join(folder, 'models.yaml');
    writeFileSync(
      config,
      `models:\n  - { name: exact, model: ${path}, weights: f32, aliases: [gpt-4] }\n  - { name: short, model: ${path}, weights: int8, maxContextTokens: 64, kvCacheTokens: 512 }\n`,
    );
    const server = await started(startServer(['--config', config]));
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as {
      data: { id: string; max_model_len: number }[];
    };
    expect(data.map(({ id }) => id)).toEqual(['exact', 'short']);
    expect(data[1]!.max_model_len).toBe(64);
    const alone: Record<string, string | undefined> = {};
    for (const model of ['exact', 'short']) alone[model] = (await complete(server, { model })).text;
    const crowd = await Promise.all(
      Array.from({ length: 16 }, (_, i) => complete(server, { model: ['exact', 'short'][i % 2] })),
    );
    for (const { status, model, text } of crowd) expect([status, text]).toEqual([200, alone[model]]);
    expect(await complete(server, {})).toMatchObject({ status: 200, model: 'exact', text: alone.exact });
    expect(await complete(server, { model: 'gpt-4' })).toMatchObject({ status: 200, text: alone.exact });
    const missing = await complete(server, { model: 'none' });
    expect([missing.status, missing.error.message]).toEqual([
      404,
      "The model 'none' does not exist. This server serves 'exact', 'short'.",
    ]);
    const families = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
    const generated = families.get('vllm:generation_tokens_total')!.samples;
    expect(generated.map(({ labels, value }) => [labels.model_name, value])).toEqual([
      ['exact', 24 * 11],
      ['short', 24 * 9],
    ]);
    const { code, stdout } = await server.stop();
    expect(code).toBe(0);
    expect(stdout).toMatch(/serves exact, short at/);
  });

  it('fail alone: the others go on, /health lists who is down, and requests wait for it', async () => {
    const model = ['a', 'b'].map((name) => `${name}=${path}`);
    const server = await started(
      startFakeServer(
        { model } as never,
        { vocabSize: 320, stepMs: 2, dieToken: 32 },
        { workerRestart: { delayMs: 4000, factor: 1 } },
      ),
    );
    const before = await complete(server, { model: 'b' });
    const leave = new AbortController();
    const deadly = complete(server, { model: 'b', prompt: [32] }, leave.signal).catch(() => null);
    await expect.poll(async () => (await health(server, '?model=b'))[0]).toBe(503);
    // It waits for the next engine, which it would end too.
    leave.abort();
    await deadly;
    expect(await health(server)).toMatchObject([
      200,
      { status: 'degraded', models: { a: { status: 'ready' }, b: { status: 'restarting' } } },
    ]);
    expect((await health(server, '?model=a'))[0]).toBe(200);
    expect((await complete(server, { model: 'a' })).status).toBe(200);
    expect(await complete(server, { model: 'b' })).toMatchObject({ status: 200, text: before.text });
    expect(await health(server)).toMatchObject([200, { status: 'ready', restarts: 1 }]);
    expect((await server.stop()).code).toBe(0);
  });

  it('end the server when the last one cannot be started again, and none before it', async () => {
    const server = await started(
      startFakeServer(
        { model: ['a', 'b'].map((name) => `${name}=${path}`) },
        { vocabSize: 320, dieToken: 32, loads: join(folder, 'loads'), goodLoads: 2 },
        { workerRestart: { delayMs: 100, factor: 1 } },
      ),
    );
    expect((await complete(server, { model: 'b', prompt: [32] })).status).toBe(503);
    // Waits for the engine, until that has failed for good.
    expect(await complete(server, { model: 'b' })).toMatchObject({
      status: 503,
      error: { code: 'engine_unavailable' },
    });
    const failed = { status: 'failed', reason: expect.stringContaining('5 attempts') };
    expect(await health(server)).toMatchObject([
      200,
      { status: 'degraded', models: { a: { status: 'ready' }, b: failed } },
    ]);
    expect(await health(server, '?model=b')).toMatchObject([503, failed]);
    expect((await complete(server, { model: 'a' })).status).toBe(200);
    expect((await complete(server, { model: 'a', prompt: [32] })).status).toBe(503);
    const { code, stderr } = await server.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/the engine cannot be started again/);
    expect(stderr).toMatch(/The model a: .*could not be started again in 5 attempts/);
  });

  it.each([
    [
      'a path that is not there',
      ['--model', 'a=/nowhere/at-all', '--model', `b=${path}`],
      /^skein: The model a cannot be loaded: .*\/nowhere\/at-all/,
    ],
    [
      'one whose longest sequence does not fit into its cache',
      [
        '--model',
        `a=${path}`,
        '--model',
        `b=${path}`,
        '--kv-cache-tokens',
        '8',
        '--max-context-tokens',
        '99',
      ],
      /^skein: The model a cannot be loaded: One sequence of --max-context-tokens = 99/,
    ],
  ])('are refused at the start for %s, by name', async (_, flags, message) => {
    const { code, stderr } = await runCli(['serve', '--port', '0', '--cache-dir', testCacheDir, ...flags]);
    expect(code).toBe(1);
    expect(stderr.split('\n').at(-2)).toMatch(message);
  });
});
