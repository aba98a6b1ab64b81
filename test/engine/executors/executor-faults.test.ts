import { join } from 'node:path';
import { buildEngine, type GptManagerOptions } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../../callbacks/gpt-manager-options.js';
import { collectResult, makeRequest } from '../../../tools/support/loop-harness.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { ManagerClient } from '../../support/manager-client.js';
import { describeWithTensorFlow } from '../../support/test-tensorflow.js';

const folder = temporaryFolder('skein-faults');
const enginePath = join(folder, 'engine');
const clients: ManagerClient[] = [];
beforeAll(async () => {
  await buildEngine({ model: tinyModelPath('gqa'), outputDirectory: enginePath, precision: 'bf16' });
});
afterAll(async () => {
  for (const { manager } of clients) await manager.shutdown();
});

/** Tokens of a prompt at which the troubled executor ends its thread. */
const EXIT = 90;

function start(params: OptionalParams & { loads?: SharedArrayBuffer }): ManagerClient {
  const optionalParams = { workerRestart: { delayMs: 0 }, maxSeqLen: 64, maxNumTokens: 64, ...params };
  const options: Partial<GptManagerOptions> = {
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'MAX_UTILIZATION',
    optionalParams,
  };
  const client = new ManagerClient(options);
  clients.push(client);
  return client;
}

const troubled = (query: string) =>
  new URL(`../../support/modules/troubled-executor.mjs?native&${query}`, import.meta.url);

async function answerOf(client: ManagerClient, id: bigint, prompt: number[]) {
  await client.submit(makeRequest(id, prompt, 12));
  const { numResponses: _, ...answer } = collectResult(client.responses.get(id) ?? []);
  return answer;
}

describe('the wasm executor in a worker', () => {
  it('dies with its thread alone: its requests fail, and the next worker answers the same', async () => {
    const client = start({ executorModule: troubled('executor=wasm') });
    expect((await client.manager.ready).executor).toBe('wasm');
    const before = await answerOf(client, 1n, [5, 6, 7]);
    expect(before.error).toBe('');
    expect((await answerOf(client, 2n, [EXIT, EXIT, EXIT])).error).toMatch(
      /The engine failed: .*exit code 3/,
    );
    expect(await answerOf(client, 3n, [5, 6, 7])).toEqual(before);
    expect(client.manager.restarts).toBe(1);
  });

  it('that cannot have its memory is an error of one sentence, and nothing else dies of it', async () => {
    const kvCacheConfig = { enableBlockReuse: true, hostCacheSize: 2 ** 32 };
    const client = start({ executor: 'wasm', kvCacheConfig });
    await expect(client.manager.ready).rejects.toThrow(/^[^\n]* KV cache blocks [^\n]* of hostCacheSize\)/);
    expect(client.manager.state).toBe('failed');
    const other = start({ executor: 'wasm' });
    expect((await other.manager.ready).executor).toBe('wasm');
  });

  it.each([
    [{ executor: 'wasm', threads: 4 }, /^threads is refused: the wasm executor .* one thread/],
    [{ executor: 'wasm', kvDtype: 'bf16' }, /^kvDtype is refused: the wasm executor .* f32/],
  ] as const)('refuses %o before a worker is started', (params, message) => {
    expect(() => start(params)).toThrow(message);
  });
});

describeWithTensorFlow('the TensorFlow executor in a worker', () => {
  const { SKEIN_CACHE_DIR, SKEIN_TEST_TENSORFLOW } = process.env;
  beforeAll(() => {
    if (SKEIN_TEST_TENSORFLOW) process.env.SKEIN_CACHE_DIR = SKEIN_TEST_TENSORFLOW;
  });
  afterAll(() => {
    if (SKEIN_CACHE_DIR === undefined) delete process.env.SKEIN_CACHE_DIR;
    else process.env.SKEIN_CACHE_DIR = SKEIN_CACHE_DIR;
  });

  it('is the only one of the process; its worker dies alone, and the next one answers the same', async () => {
    const client = start({ executorModule: troubled('executor=tensorflow') });
    expect((await client.manager.ready).executor).toBe('tensorflow');
    const before = await answerOf(client, 1n, [5, 6, 7]);
    expect(before.error).toBe('');
    await expect(start({ executor: 'tensorflow' }).manager.ready).rejects.toThrow(
      /^TensorFlow computes in one thread of a process, and another one has it already;/,
    );
    expect(await answerOf(client, 2n, [5, 6, 7])).toEqual(before);
    expect((await answerOf(client, 3n, [EXIT, EXIT, EXIT])).error).toMatch(
      /The engine failed: .*exit code 3/,
    );
    expect(await answerOf(client, 4n, [5, 6, 7])).toEqual(before);
    expect(client.manager.restarts).toBe(1);
  });
});

describe('a worker that is started again', () => {
  it('tells anew what computes', async () => {
    const loads = new SharedArrayBuffer(8);
    const client = start({ executorModule: troubled('fallback'), loads });
    expect((await client.manager.ready).executorFallback).toBe('load 1');
    expect(client.manager.info?.executorFallback).toBe('load 1');
    await answerOf(client, 1n, [EXIT, EXIT, EXIT]);
    await answerOf(client, 2n, [5, 6, 7]);
    expect(client.manager.info?.executorFallback).toBe('load 2');
  });
});
