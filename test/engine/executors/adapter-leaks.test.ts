import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { worded } from '../../../base/named-text.js';
import type { InferenceRequest } from '../../../callbacks/types.js';
import { RopeTable } from '../../../engine/batch/rope-table.js';
import type { Engine } from '../../../engine/building/engine.js';
import type { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { GenerationLoop } from '../../../engine/generation-loop.js';
import { changeSlots } from '../../../engine/loop/step-adapters.js';
import { pageSizes } from '../../../engine/peft/page-sizes.js';
import { PeftCacheManager } from '../../../engine/peft/peft-cache-manager.js';
import { assembleLoop } from '../../../engine/worker/assemble-loop.js';
import { KvCacheManager } from '../../../kvcache/kv-cache-manager.js';
import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import { openAdapter } from '../../../models/adapters/open-adapter.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { heldResources } from '../../../tools/soak/resources.js';
import { makeRequest } from '../../../tools/support/loop-harness.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { bringing, naming } from '../../support/lora-requests.js';
import { randomAdapter } from '../../support/random-adapter.js';
import { draws } from '../../support/scale.js';

const LOADS = draws(2000);
/** Loads until the process has what it keeps: compiled code, memory that the allocator holds back. */
const WARM_UP = 600;
const RANK = 8;
const PAGES = { host: 6, device: 3 };
const AT_ONCE = 4;
const ROUND = 20;
/**
 * Bounds of the growth after the warm-up. An adapter takes 70 KB of the executor, 100 MB over 1,400 loads,
 * and in JavaScript, besides its arrays, 5 KB of objects, 7 MB. `nativeBytes` are those of the process less
 * all that JavaScript has, garbage too: of the arrays of a few hundred adapters that wait for a collection,
 * the allocator holds back up to 40 MB. Sanitizers hold back far more; they run the tests in native/, so that
 * this one is outside.
 */
const MAX_GROWTH = { nativeBytes: 75e6, heapBytes: 4e6 };

const FOLDERS = ['lora-plain', 'lora-patterns', 'lora-rslora', 'lora-plain-gguf'].map((name) =>
  fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url)),
);

const engines = new TestEngines();
let engine: Engine;
let executor: NativeExecutor;
beforeAll(async () => {
  engine = await engines.get(tinyModelPath('gqa'), 'f32');
  executor = openExecutor(engine, {
    tokensPerBlock: 16,
    numBlocks: 32,
    maxNumSequences: AT_ONCE,
    maxLogitRows: AT_ONCE,
    maxAdapters: PAGES.device,
    maxLoraRank: RANK,
  });
});
afterAll(() => {
  executor.close();
  engines.remove();
});

interface World {
  loop: GenerationLoop;
  cache: PeftCacheManager;
  kvCache: KvCacheManager;
  waiting: InferenceRequest[];
  errors: string[];
}

/** The engine's loop over the executor, with its queue in plain view. */
function makeWorld(): World {
  const { config } = engine.manifest;
  const { tokensPerBlock, maxSeqLen, numBlocks, maxNumTokens } = executor.options;
  const sizes = pageSizes(config, { optimalAdapterSize: RANK, maxAdapterSize: RANK });
  const cache = new PeftCacheManager(sizes, PAGES, PAGES.device);
  const kvCache = new KvCacheManager({ numBlocks, tokensPerBlock, maxSeqLen, enableBlockReuse: true });
  const waiting: InferenceRequest[] = [];
  const errors: string[] = [];
  const options = {
    schedulerPolicy: 'MAX_UTILIZATION' as const,
    microBatch: { maxBatchSize: AT_ONCE, maxNumTokens },
    maxNumSequences: AT_ONCE,
    maxInputLen: maxSeqLen,
    maxSeqLen,
    maxBeamWidth: 1,
    maxTopLogProbs: null,
    checkIntegrity: true,
  };
  const loop = assembleLoop(options, {
    executor,
    kvCache,
    rope: new RopeTable(ropeFrequencies(config.rope), null, AT_ONCE),
    adapters: { cache, model: config },
    callbacks: {
      wantsStatsJson: false,
      getInferenceRequests: (max) => waiting.splice(0, max),
      pollStopSignals: () => [],
      endIteration: ({ responses }) => errors.push(...responses.errors.map(({ text }) => worded(text))),
      reportError: (error) => errors.push(error.message),
    },
    clock: () => performance.now(),
    drawSeed: () => 1n,
  });
  return { loop, cache, kvCache, waiting, errors };
}

/**
 * What is held once adapters that take all pages have been put in the place of all others, which can be done
 * only while those are not in use.
 */
function heldWhenFilled({ cache, kvCache, loop }: World, adapter: AdapterWeights) {
  const taskIds = Array.from({ length: PAGES.host }, (_, i) => BigInt(i) + 2n ** 63n);
  const uses = taskIds.map((taskId) => cache.admit(taskId, adapter));
  const onDevice = taskIds.slice(0, PAGES.device);
  expect(cache.ensure(onDevice)).toEqual([]);
  const fail = (_: number, reason: string) => expect.fail(reason);
  changeSlots(executor, cache, fail);
  cache.endStep(onDevice);
  for (const use of uses) cache.release(use);
  cache.checkIntegrity();
  return {
    ...cache.stats(),
    memory: executor.memory(),
    freeBlocks: kvCache.freeBlocks,
    activeRequests: loop.activeRequests,
  };
}

/** Requests with adapters without end; each task brings its weights once, and some requests name those of the one before. */
class AdapterRequests {
  readonly #adapters: readonly AdapterWeights[];
  #count = 0;

  constructor(adapters: readonly AdapterWeights[]) {
    this.#adapters = adapters;
  }

  /**
   * The first has the task that the last one before had, with other weights: no request uses those any more.
   */
  round(): InferenceRequest[] {
    const tensors = [
      ...(this.#count === 0 ? [] : [this.#bring(this.#count)]),
      ...Array.from({ length: ROUND }, (_, i) => {
        if (i % 5 === 4) return naming(BigInt(this.#count));
        this.#count++;
        return this.#bring(this.#count - 1, this.#count);
      }),
    ];
    return tensors.map((inputs, i) =>
      makeRequest(BigInt(100 * this.#count + i), [1 + i, 2], 1 + (i % 3), inputs),
    );
  }

  #bring(content: number, task = content) {
    return bringing(BigInt(task), this.#adapters[content % this.#adapters.length]!);
  }
}

/** What the process holds once garbage is collected. */
function held() {
  const { threads, files, heapBytes } = heldResources();
  const { rss, heapTotal, external } = process.memoryUsage();
  return { threads, files, heapBytes, nativeBytes: rss - heapTotal - external };
}

function expectNoGrowth(since: ReturnType<typeof held>): void {
  const now = held();
  expect([now.threads, now.files]).toEqual([since.threads, since.files]);
  expect(now.heapBytes - since.heapBytes).toBeLessThan(MAX_GROWTH.heapBytes);
  expect(now.nativeBytes - since.nativeBytes).toBeLessThan(MAX_GROWTH.nativeBytes);
}

it(`${LOADS} loads of adapters leave nothing behind`, () => {
  const { config } = engine.manifest;
  const slots = executor.adapters!;
  const { put } = slots;
  let loads = 0;
  slots.put = (slot, weights) => {
    loads++;
    put(slot, weights);
  };
  const world = makeWorld();
  const filling = randomAdapter(config, 99, { maxRank: RANK, unchanged: 0 });
  const atFirst = heldWhenFilled(world, filling);
  const requests = new AdapterRequests(
    Array.from({ length: 15 }, (_, i) => randomAdapter(config, i, { maxRank: RANK })),
  );
  let warm: ReturnType<typeof held> | null = null;
  let opened = 0;
  while (loads < LOADS) {
    if (warm === null && loads >= WARM_UP) warm = held();
    world.waiting.push(...requests.round());
    while (world.loop.iterate());
    openAdapter(FOLDERS[opened++ % FOLDERS.length]!, config, { maxRank: RANK });
  }
  slots.put = put;
  expect(world.errors).toEqual([]);
  expect(heldWhenFilled(world, filling)).toEqual(atFirst);
  expectNoGrowth(warm!);
});

it(`${LOADS} changes of slots, and as many that are refused, leave nothing in the executor`, () => {
  const { config } = engine.manifest;
  const slots = executor.adapters!;
  const adapters = Array.from({ length: 15 }, (_, i) => randomAdapter(config, i, { maxRank: RANK }));
  const wrong = randomAdapter(config, 1, { maxRank: 1, unchanged: 0 });
  wrong.moduleLayers.at(-1)!.b = new Float32Array(1);
  const memoryWhenCleared = () => {
    for (let slot = 0; slot < PAGES.device; slot++) slots.clear(slot);
    return executor.memory();
  };
  const atFirst = memoryWhenCleared();
  let warm = held();
  for (let i = 0; i < LOADS; i++) {
    if (i === WARM_UP) warm = held();
    slots.put(i % PAGES.device, adapters[i % adapters.length]!);
    if (i % 5 === 0) slots.clear(i % 2);
    expect(() => slots.put(i % PAGES.device, wrong)).toThrow('b has 1 elements');
  }
  expect(memoryWhenCleared()).toEqual(atFirst);
  expectNoGrowth(warm);
});
