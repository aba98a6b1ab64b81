import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import { CHUNKING_POLICIES } from '../../scheduler/tokens/types.js';
import {
  bool,
  f32,
  type HarnessOptions,
  LoopHarness,
  makeRequest,
  runAlone,
  u64,
} from '../../tools/support/loop-harness.js';
import { draws } from '../support/scale.js';

const count = (length: number, from = 1) => Array.from({ length }, (_, index) => from + index);
const REUSE: HarnessOptions = { enableBlockReuse: true };

/** Tokens of one request after the other, with what each found in the cache. */
function inTurn(harness: LoopHarness, prompts: number[][], maxNewTokens = 1): number[] {
  return prompts.map((prompt, index) => {
    const before = harness.stats.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0);
    const request = makeRequest(BigInt(harness.responses.length + index), prompt, maxNewTokens);
    harness.run(request);
    expect(harness.resultOf(request.requestId)).toEqual(runAlone(request));
    return harness.stats.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0) - before;
  });
}

describe('a prompt that was seen before', () => {
  it.each([
    [15, 14],
    [16, 15],
    [17, 16],
    [18, 16],
  ])('of %i tokens computes all but what full blocks hold', (length, reusable) => {
    // With one generated token, whose keys are never written, the blocks of the prompt are all there is.
    const full = Math.floor(length / 8) * 8;
    const [first, second] = inTurn(new LoopHarness(REUSE), [count(length), count(length)]);
    expect([first, second]).toEqual([0, Math.min(full, length - 1, reusable)]);
  });

  it('finds generated tokens too, but never the last one, which was not written', () => {
    const harness = new LoopHarness(REUSE);
    const prompt = count(10);
    const request = makeRequest(99n, prompt, 7);
    harness.run(request);
    const { tokens } = harness.resultOf(99n);
    // 10 + 7 tokens, 16 of them written: two full blocks.
    expect(inTurn(harness, [[...prompt, ...tokens, 5]])).toEqual([16]);
    const shorter = new LoopHarness(REUSE).run(makeRequest(99n, prompt, 6));
    // 10 + 6 tokens, 15 of them written: the second block is not full.
    expect(inTurn(shorter, [[...prompt, ...tokens.slice(0, 6), 5, 5]])).toEqual([8]);
  });

  it('shares nothing across salts', () => {
    const harness = new LoopHarness(REUSE);
    const reused = [1n, 2n, 1n].map((salt, index) => {
      harness.run(makeRequest(BigInt(index), count(20), 2, { cache_salt: u64(salt) }));
      return harness.stats.reduce((sum, stats) => sum + stats.reusedTokens, 0);
    });
    expect(reused).toEqual([0, 0, 16]);
  });

  it('is computed anew where reuse is off', () => {
    expect(inTurn(new LoopHarness(), [count(20), count(20)])).toEqual([0, 0]);
  });

  it('leaves nothing in the cache if it failed', () => {
    const harness = new LoopHarness({ ...REUSE, fake: { poisonToken: 3 } });
    for (const requestId of [1n, 2n]) {
      harness.run(makeRequest(requestId, count(20), 2));
      expect(harness.resultOf(requestId).error).toMatch(/not finite/);
    }
    expect(harness.stats.every(({ reusedTokens }) => reusedTokens === 0)).toBe(true);
  });
});

it('comes back from the secondary pool, which statistics tell of', () => {
  const harness = new LoopHarness({
    ...REUSE,
    numBlocks: 8,
    numSecondaryBlocks: 8,
    statsFormat: 'IterationStats',
  });
  expect(inTurn(harness, [count(20), count(60, 30), count(20), [...count(12), ...count(8, 70)]])).toEqual([
    0, 0, 16, 12,
  ]);
  expect(harness.stats.at(-1)).toMatchObject({ swappedInBlocks: 2 });
  expect(harness.stats.at(-1)!.swappedOutBlocks).toBeGreaterThan(2);
  expect(JSON.parse(harness.statsJson.at(-1)!).kvCacheStats).toMatchObject({
    secondaryMaxNumBlocks: 8,
    swappedInBlocks: 2,
  });
});

describe('retention that requests ask for', () => {
  const ranges = (...rows: number[][]): Tensor => ({
    shape: [1, rows.length, 4],
    data: Int32Array.from(rows.flat()),
  });
  const run = (
    harness: LoopHarness,
    requestId: bigint,
    prompt: number[],
    inputs: Record<string, Tensor> = {},
  ) => {
    harness.run(makeRequest(requestId, prompt, 1, inputs));
    return harness.stats.findLast(({ queriedTokens }) => queriedTokens > 0)!.reusedTokens;
  };

  it.each([
    ['not at all', 0, {}, 0],
    ['for a range at a high priority', 0, { retention_ranges: ranges([0, 16, 80, 0]) }, 16],
    ['for a time that is not over', 999, { retention_ranges: ranges([0, -1, 80, 1000]) }, 19],
    ['for a time that is over', 1000, { retention_ranges: ranges([0, -1, 80, 1000]) }, 0],
  ])('a prompt is kept %s through a flood of others', (_, laterMs, inputs, expected) => {
    const harness = new LoopHarness({ ...REUSE, numBlocks: 8 });
    run(harness, 1n, count(24), inputs);
    harness.nowMs += laterMs;
    for (let flood = 0; flood < 4; flood++)
      run(harness, BigInt(10 + flood), count(32, 30 + 2 * flood).reverse());
    expect(run(harness, 2n, count(20))).toBe(expected);
  });

  it('a prompt of low priority is not swapped out', () => {
    const found = [35, 29].map((priority) => {
      const harness = new LoopHarness({ ...REUSE, numBlocks: 8, numSecondaryBlocks: 8 });
      run(harness, 1n, count(24), { retention_ranges: ranges([0, -1, priority, 0]) });
      run(harness, 2n, count(63, 30));
      return run(harness, 3n, count(25));
    });
    expect(found).toEqual([24, 0]);
  });
});

it('ends with a copy that fails, since nobody knows then what the cached blocks hold', () => {
  for (const enableTrtOverlap of [false, true]) {
    const harness = new LoopHarness({ ...REUSE, enableTrtOverlap });
    inTurn(harness, [count(20)]);
    harness.executor.copyBlocks = () => {
      throw new Error('the copy failed');
    };
    harness.waiting.push(makeRequest(7n, [...count(12), 50, 51, 52, 53, 54], 2));
    expect(() => harness.runToEnd()).toThrow('the copy failed');
  }
});

describe('a context that ends between two chunks', () => {
  const CHUNKS: HarnessOptions = {
    ...REUSE,
    chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
    maxNumTokens: 16,
    maxNumSequences: 4,
  };
  const reusedTokens = (harness: LoopHarness) =>
    harness.stats.reduce((sum, stats) => sum + stats.reusedTokens, 0);

  it.each([
    ['leaves the full blocks that it has written', [], 32],
    ['leaves nothing where they are not finite', [17], 0],
  ])('%s', (_, poison, expected) => {
    const harness = new LoopHarness({ ...CHUNKS, fake: { poisonToken: poison[0] ?? -1 } });
    harness.waiting.push(makeRequest(1n, count(60), 2));
    harness.loop.iterate();
    harness.stops.add(1n);
    harness.runToEnd();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: 5, tokens: [] });
    harness.run(makeRequest(2n, count(60), 2));
    expect(reusedTokens(harness)).toBe(expected);
    if (expected > 0) expect(harness.resultOf(2n)).toEqual(runAlone(makeRequest(2n, count(60), 2)));
  });

  it('finds them again after a pause', () => {
    const harness = new LoopHarness({
      ...CHUNKS,
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 9,
      numSecondaryBlocks: 9,
      maxNumTokens: 17,
      maxSeqLen: 72,
    });
    const [first, second] = [makeRequest(1n, count(15), 30), makeRequest(2n, count(56, 20), 2)];
    harness.waiting.push(first);
    harness.loop.iterate();
    harness.run(second);
    // The second takes the other seven blocks; the first needs a third one while the second has run two chunks of four.
    const paused = harness.stats.findIndex(({ pausedRequests }) => pausedRequests === 1);
    expect(harness.stats[paused]).toMatchObject({ generationRequests: 1, contextRequests: 0 });
    const computed = harness.stats.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
    expect(reusedTokens(harness)).toBeGreaterThanOrEqual(16);
    expect(computed).toBe(15 + 56);
    for (const request of [first, second])
      expect(harness.resultOf(request.requestId)).toEqual(
        runAlone(request, { maxSeqLen: 72, maxNumTokens: 72 }),
      );
  });
});

describe('the reuse delay', () => {
  it.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)(
    '%s: of two equal prompts one waits',
    (schedulerPolicy) => {
      const harness = new LoopHarness({ ...REUSE, schedulerPolicy }).run(
        makeRequest(1n, count(20), 3),
        makeRequest(2n, count(20), 3),
        makeRequest(3n, count(20, 50), 3),
      );
      expect(harness.stats.slice(0, 2)).toMatchObject([
        { contextRequests: 2, contextTokens: 40, reusedTokens: 0 },
        { contextRequests: 1, contextTokens: 4, reusedTokens: 16, generationRequests: 2 },
      ]);
    },
  );

  it('lasts while the other context runs in chunks', () => {
    const harness = new LoopHarness({
      ...REUSE,
      chunkingPolicy: 'FIRST_COME_FIRST_SERVED',
      maxNumTokens: 32,
      maxNumSequences: 4,
    }).run(makeRequest(1n, count(50), 2), makeRequest(2n, count(50), 2));
    expect(harness.stats.map(({ contextTokens }) => contextTokens).slice(0, 4)).toEqual([32, 18, 2, 0]);
    expect(harness.resultOf(2n)).toEqual(runAlone(makeRequest(2n, count(50), 2)));
  });
});

it('has room for the penalties of sequences that together are longer than the pool', () => {
  const harness = new LoopHarness({
    ...REUSE,
    schedulerPolicy: 'MAX_UTILIZATION',
    numBlocks: 19,
    maxNumSequences: 8,
  });
  const requests = count(8).map((index) =>
    makeRequest(BigInt(index), [...count(40), 50 + index], 7, { repetition_penalty: f32(1.2) }),
  );
  harness.run(...requests);
  // Histories of five sequences of more than 41 tokens: the pool has 19 * 8.
  expect(Math.max(...harness.stats.map(({ generationRequests }) => generationRequests))).toBeGreaterThan(4);
  for (const request of requests) {
    expect(harness.resultOf(request.requestId).tokens).toEqual(runAlone(request).tokens);
  }
});

const STEMS = [
  count(50, 1),
  count(50, 30),
  [...count(11, 1), ...count(39, 60)],
  [...count(8, 30), ...count(42, 2)],
];

const shape = fc.record({
  stem: fc.constantFrom(...STEMS),
  length: fc.integer({ min: 1, max: 40 }),
  tail: fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 6 }),
  maxNewTokens: fc.integer({ min: 1, max: 18 }),
  samples: fc.boolean(),
  salt: fc.constantFrom(0n, 0n, 0n, 5n),
  priority: fc.constantFrom(0.2, 0.5),
  arrival: fc.integer({ min: 0, max: 30 }),
  cancelAfter: fc.option(fc.integer({ min: 0, max: 30 }), { nil: null, freq: 6 }),
});

const engine = fc.record({
  modelType: fc.constantFrom('InflightFusedBatching' as const, 'InflightBatching' as const),
  schedulerPolicy: fc.constantFrom('MAX_UTILIZATION' as const, 'GUARANTEED_NO_EVICT' as const),
  chunkingPolicy: fc.constantFrom(undefined, ...CHUNKING_POLICIES),
  numBlocks: fc.constantFrom(8, 9, 11, 14, 40),
  maxNumTokens: fc.integer({ min: 48, max: 64 }),
  maxNumSequences: fc.integer({ min: 2, max: 8 }),
  numSecondaryBlocks: fc.constantFrom(0, 2, 30),
  enableTrtOverlap: fc.boolean(),
  minMicroBatchSize: fc.integer({ min: 1, max: 2 }),
  stages: fc.constantFrom(1, 1, 2, 3),
  areStagesEager: fc.boolean(),
  begunStepsRun: fc.constantFrom('at-begin' as const, 'at-finish' as const),
});

describe('a crowd of prompts that begin alike', () => {
  it('gets what each gets alone, with pauses, chunks, cancels and a pool too small', () => {
    let reused = 0;
    let pauses = 0;
    let swaps = 0;
    let overlapped = 0;
    fc.assert(
      fc.property(engine, fc.array(shape, { minLength: 6, maxLength: 20 }), (options, shapes) => {
        const { chunkingPolicy, begunStepsRun, ...rest } = options;
        const chunking = chunkingPolicy ? { chunkingPolicy } : {};
        const harness = new LoopHarness({ ...rest, ...chunking, ...REUSE, fake: { begunStepsRun } });
        const requests = shapes.map(({ stem, length, tail, maxNewTokens, samples, salt, priority }, index) =>
          makeRequest(
            BigInt(index),
            [...stem.slice(0, length), ...tail],
            maxNewTokens,
            {
              random_seed: u64(BigInt(index)),
              return_log_probs: bool(true),
              cache_salt: u64(salt),
              ...(samples ? { temperature: f32(0.8) } : {}),
            },
            priority,
          ),
        );
        const last = Math.max(...shapes.map(({ arrival }) => arrival));
        for (let iteration = 0; ; iteration++) {
          expect(iteration).toBeLessThan(5000);
          for (const [index, { arrival, cancelAfter }] of shapes.entries()) {
            if (arrival === iteration) harness.waiting.push(requests[index]!);
            if (cancelAfter !== null && arrival + cancelAfter === iteration) harness.stops.add(BigInt(index));
          }
          if (!harness.loop.iterate() && iteration > last && harness.waiting.length === 0) break;
        }
        expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
        for (const request of requests) {
          const found = harness.resultOf(request.requestId);
          const alone = runAlone(request);
          expect(found.error).toBe('');
          if (found.finishReason !== 5)
            expect(found).toMatchObject({ tokens: alone.tokens, logProbs: alone.logProbs });
          else expect(found.tokens).toEqual(alone.tokens.slice(0, found.tokens.length));
        }
        const totals = harness.stats.at(-1)!;
        expect(totals.totalReplayMismatches).toBe(0);
        reused += harness.stats.reduce((sum, stats) => sum + stats.reusedTokens, 0);
        pauses += totals.totalPauses;
        swaps += totals.swappedInBlocks;
        for (const { microBatchId } of harness.stats) overlapped += microBatchId;
      }),
      { numRuns: draws(40) },
    );
    expect(reused).toBeGreaterThan(draws(1300));
    expect(pauses).toBeGreaterThan(draws(13));
    expect(swaps).toBeGreaterThan(draws(4));
    expect(overlapped).toBeGreaterThan(draws(80));
  });
});
