import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildEngine, type GptManagerOptions, type InferenceRequest } from 'skein';
import { beforeAll, expect, it } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { collectResult, makeRequest, type RequestResult } from '../../tools/support/loop-harness.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { ManagerClient } from '../support/manager-client.js';
import { randomNumbers, randomScenario } from './scenario.js';

const folder = temporaryFolder('skein-death');
const enginePath = join(folder, 'engine');
let vocabSize = 0;
let requests: InferenceRequest[];
/** What each of them gets alone. */
const alone = new Map<bigint, Omit<RequestResult, 'numResponses'>>();
beforeAll(async () => {
  const model = tinyModelPath('gqa');
  const engine = await buildEngine({ model, outputDirectory: enginePath, precision: 'bf16' });
  vocabSize = engine.manifest.config.vocabSize;
  const limits = { vocabSize, requests: 40, maxPrompt: 40, maxNew: 100, arrivalSpan: 0, seed: 23 };
  requests = randomScenario({ ...limits, sharedPrompts: true }).map(({ request }) => request);
  const quiet = start({});
  for (const request of requests) {
    await quiet.submit(request);
    alone.set(request.requestId, answerOf(quiet, request.requestId));
  }
  await quiet.manager.shutdown();
});

const EXIT = 90;
const ENDLESS = 92;
const SEGMENTATION = 96;
const KILLED = 97;

/** A manager on the native executor, whose worker dies of a prompt of one of the numbers above, three times. */
function start(params: OptionalParams): ManagerClient {
  const options: GptManagerOptions = {
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'MAX_UTILIZATION',
    getInferenceRequests: () => [],
    sendResponse: () => {},
    optionalParams: {
      executorModule: new URL('../support/modules/troubled-executor.mjs?native', import.meta.url),
      workerRestart: { delayMs: 0 },
      watchdogTimeoutMs: 2000,
      threads: 2,
      tokensPerBlock: 16,
      maxSeqLen: 160,
      maxNumSequences: 16,
      maxNumTokens: 64,
      enableChunkedContext: true,
      checkIntegrity: true,
      ...params,
    },
  };
  const { getInferenceRequests: _, sendResponse: __, ...rest } = options;
  return new ManagerClient(rest as Partial<GptManagerOptions>);
}

/** The answer; how many responses it came in depends on the crowd. */
function answerOf(client: ManagerClient, id: bigint): Omit<RequestResult, 'numResponses'> {
  const { numResponses: _, ...answer } = collectResult(client.responses.get(id) ?? []);
  return answer;
}

/** Causes of death, in turns: of workers that are threads, and of those that are processes. */
const DEATHS = [EXIT, EXIT, EXIT, ENDLESS];
const DEATHS_OF_PROCESSES = [SEGMENTATION, KILLED, EXIT, ENDLESS];

it.each([
  [false, false],
  [true, false],
  [true, true],
])(
  'workers killed at random under load: every request ends once, and its answer is the one that it gets alone (overlap %s, isolate %s)',
  async (enableTrtOverlap, isolate) => {
    const small = { maxTokens: 24 * 16, enableBlockReuse: true };
    const client = start({ kvCacheConfig: small, enableTrtOverlap, isolate });
    const random = randomNumbers(5);
    // Each cause of death once.
    const KILLS = 4;
    let kills = 0;
    let deaths = 0;
    const kill = async () => {
      const kind = (isolate ? DEATHS_OF_PROCESSES : DEATHS)[kills % 4]!;
      const killer = makeRequest(1000n + BigInt(kills++), [kind, kind, kind], 3);
      const place = Math.floor(random() * 8);
      const dead = client.submit(killer);
      client.waiting.splice(place, 0, ...client.waiting.splice(-1));
      await dead;
      deaths++;
      expect(answerOf(client, killer.requestId).error).toMatch(/The engine failed: /);
    };
    let failures = 0;
    const runToSuccess = async (request: InferenceRequest) => {
      for (;;) {
        client.responses.delete(request.requestId);
        await client.submit(request);
        const answer = answerOf(client, request.requestId);
        if (answer.error === '') {
          expect(answer, `request ${request.requestId}`).toStrictEqual(alone.get(request.requestId));
          return;
        }
        expect(answer.error).toMatch(/The engine failed: /);
        failures++;
        if (random() < 0.2 && kills === deaths && kills < KILLS) void kill();
      }
    };
    await client.manager.ready;
    const runs = requests.map(runToSuccess);
    await kill();
    await Promise.all(runs);
    while (kills < KILLS) await kill();
    await expect.poll(() => [deaths, client.manager.restarts]).toEqual([KILLS, KILLS]);
    expect(failures).toBeGreaterThan(10);
    await client.manager.shutdown();
    expect(client.manager.state).toBe('stopped');
    expect(client.errors.filter((message) => /after its final one/.test(message))).toEqual([]);
    expect(client.manager.pid).toBeNull();
  },
);

interface Held {
  rss: number;
  virtual: number;
  threads: number;
  files: number;
  resources: string[];
}

function held(): Held {
  const status = readFileSync('/proc/self/status', 'utf8');
  const number = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    rss: number('VmRSS') * 1024,
    virtual: number('VmSize') * 1024,
    threads: number('Threads'),
    files: readdirSync('/proc/self/fd').length,
    resources: process.getActiveResourcesInfo().toSorted(),
  };
}

const onLinux = it.runIf(process.platform === 'linux');

onLinux(
  '6 restarts of a process leave no memory, thread or handle behind in this one, and no process',
  async () => {
    const client = start({ isolate: true, threads: 1 });
    await client.manager.ready;
    const pids = new Set<number>();
    const liveAndDie = async (id: bigint) => {
      await client.submit(makeRequest(id, [1, 2, 3, 4, 5], 20));
      expect(answerOf(client, id).error).toBe('');
      pids.add(client.manager.pid!);
      await client.submit(makeRequest(id + 1n, [KILLED, KILLED, KILLED], 20));
      expect(answerOf(client, id + 1n).error).toMatch(/SIGKILL/);
    };
    await liveAndDie(1n);
    const before = held();
    for (let death = 1; death <= 6; death++) await liveAndDie(BigInt(10 * death));
    const after = held();
    expect(pids.size).toBe(7);
    expect(after.threads).toBe(before.threads);
    expect(after.files).toBe(before.files);
    expect(after.resources).toEqual(before.resources);
    expect(after.rss - before.rss).toBeLessThan(30 * 2 ** 20);
    await client.manager.shutdown();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  },
);

onLinux('10 restarts leave no memory, thread or handle behind', async () => {
  // 32 MiB of KV cache each, of which little is touched: the address space shows what the resident set would not.
  const client = start({ kvCacheConfig: { maxTokens: 2 ** 18 }, threads: 4, maxNumSequences: 2048 });
  const { memory } = await client.manager.ready;
  expect(memory.kvCacheBytes).toBe(32 * 2 ** 20);
  const live = async (id: bigint) => {
    await client.submit(makeRequest(id, [1, 2, 3, 4, 5], 20));
    expect(answerOf(client, id).error).toBe('');
  };
  const die = async (id: bigint) => {
    await client.submit(makeRequest(id, [EXIT, EXIT, EXIT], 20));
    expect(answerOf(client, id).error).toMatch(/exit code 3/);
  };
  await live(1n);
  await die(2n);
  await live(3n);
  const before = held();
  for (let death = 0; death < 10; death++) {
    await die(BigInt(10 + 2 * death));
    await live(BigInt(11 + 2 * death));
  }
  const after = held();
  expect(client.manager.restarts).toBe(11);
  expect(after.threads).toBe(before.threads);
  expect(after.files).toBe(before.files);
  expect(after.resources).toEqual(before.resources);
  expect(after.virtual - before.virtual).toBeLessThan(5 * memory.kvCacheBytes);
  expect(after.rss - before.rss).toBeLessThan(60 * 2 ** 20);
  await client.manager.shutdown();
  expect(held().threads).toBeLessThan(before.threads);
});
