import { expect, it } from 'vitest';
import { CacheRouter } from '../../../callbacks/routing/cache-router.js';
import { ClusterSimulation } from '../../../host/simulation/cluster-simulation.js';
import type { ClusterArrival, Pace } from '../../../host/simulation/cluster-types.js';
import { EventQueue } from '../../../host/simulation/event-queue.js';
import { sharedPrefixTrace } from '../../../host/simulation/shared-prefixes.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import { LoopHarness, makeRequest, tensorOf } from '../../../tools/support/loop-harness.js';
import { Random } from '../../../tools/support/random.js';

const TOKENS_PER_BLOCK = 8;
const EVENT_DELAY_MS = 3;
// Numbers with few common multiples: hardly two things happen at the same time.
const PACE: Pace = { iterationMs: 1.037, contextTokenMs: 0.511, generationMs: 1.129 };
const POOL = { numBlocks: 40, tokensPerBlock: TOKENS_PER_BLOCK, maxNumTokens: 48 };
const NUM_PLACES = 6;

const uniform = (seed: number) => {
  const source = new Random(seed);
  return () => source.uniform();
};
const arrivalsOf = (rate: number): ClusterArrival[] => [
  ...sharedPrefixTrace({
    ...{ requests: 36, rate, prefixes: 5, prefixTokens: 40, ownTokens: 10, maxNewTokens: 14, turns: 2 },
    random: uniform(5),
  }),
];

interface Seen {
  worker: number;
  firstTokenMs: number;
  lastTokenMs: number;
}

interface Totals {
  seen: Seen[];
  iterations: number;
  contextTokens: number;
  reusedTokens: number;
}

/** Real generation loops over executors that compute, each iteration as long as the pace says, on a clock of the test. */
function runLoops(workers: number, routing: 'random' | 'cache', arrivals: readonly ClusterArrival[]): Totals {
  const random = uniform(9);
  const router = new CacheRouter({
    blockTime: TOKENS_PER_BLOCK * PACE.contextTokenMs,
    requestTime: 100 * PACE.generationMs,
  });
  const loops = Array.from({ length: workers }, () => {
    const options = { ...POOL, maxNumSequences: NUM_PLACES, maxSeqLen: 320, fake: { vocabSize: 3000 } };
    return new LoopHarness({
      ...options,
      ...{ enableBlockReuse: true, chunkingPolicy: 'EQUAL_PROGRESS' as const, maxEvents: 10_000 },
    });
  });
  for (const index of loops.keys()) router.add(`${index}`);
  const isBusy = loops.map(() => false);
  const events = new EventQueue<() => void>();
  const totals: Totals = {
    seen: arrivals.map(() => ({ worker: -1, firstTokenMs: Number.NaN, lastTokenMs: Number.NaN })),
    ...{ iterations: 0, contextTokens: 0, reusedTokens: 0 },
  };
  const begin = (index: number, nowMs: number): void => {
    const harness = loops[index]!;
    if (isBusy[index]) return;
    harness.stats.length = 0;
    harness.responses.length = 0;
    harness.loop.iterate();
    const [stats] = harness.stats;
    if (stats === undefined) return;
    isBusy[index] = true;
    const cacheEvents = harness.kvEvents.splice(0);
    const responses = [...harness.responses];
    const endMs =
      nowMs +
      PACE.iterationMs +
      stats.contextTokens * PACE.contextTokenMs +
      stats.generationRequests * PACE.generationMs;
    events.push(endMs, () => {
      isBusy[index] = false;
      totals.iterations += 1;
      totals.contextTokens += stats.contextTokens;
      totals.reusedTokens += stats.reusedTokens;
      for (const { requestId, outputs, final, error } of responses) {
        expect(error).toBe('');
        const one = totals.seen[Number(requestId)]!;
        const { atMs } = arrivals[Number(requestId)]!;
        if (tensorOf(outputs, 'output_ids')!.data.length > 0 && Number.isNaN(one.firstTokenMs)) {
          one.firstTokenMs = endMs - atMs;
          one.worker = index;
          router.firstToken(`${requestId}`);
        }
        if (!final) continue;
        one.lastTokenMs = endMs - atMs;
        router.end(`${requestId}`);
      }
      events.push(endMs + EVENT_DELAY_MS, () => router.note(`${index}`, cacheEvents));
      begin(index, endMs);
    });
  };
  for (const [request, { atMs, tokens, maxNewTokens }] of arrivals.entries()) {
    events.push(atMs, () => {
      const hashes = promptHashes({ salt: 0n }, tokens, TOKENS_PER_BLOCK);
      const index =
        routing === 'random'
          ? Math.floor(random() * workers)
          : Number(router.route({ id: `${request}`, hashes })!.worker);
      loops[index]!.waiting.push(makeRequest(BigInt(request), [...tokens], maxNewTokens));
      begin(index, atMs);
    });
  }
  for (let next = events.pop(); next !== undefined; next = events.pop()) next.event();
  return totals;
}

it.each([
  [2, 'random', 40],
  [2, 'cache', 40],
  [3, 'cache', 90],
  [4, 'random', 200],
  [4, 'cache', 200],
] as const)(
  '%i simulated workers do what as many real loops do, by %s at %i requests a second',
  (workers, routing, rate) => {
    const arrivals = arrivalsOf(rate);
    const real = runLoops(workers, routing, arrivals);
    const simulated = new ClusterSimulation({
      ...{ workers, routing, pace: PACE, eventDelayMs: EVENT_DELAY_MS, random: uniform(9) },
      worker: {
        ...{ policy: 'GUARANTEED_NO_EVICT', numBlocks: POOL.numBlocks, tokensPerBlock: TOKENS_PER_BLOCK },
        maxNumRequests: NUM_PLACES,
        microBatch: {
          ...{ maxBatchSize: NUM_PLACES, maxNumTokens: POOL.maxNumTokens },
          chunking: { unit: TOKENS_PER_BLOCK, policy: 'EQUAL_PROGRESS' },
        },
      },
    }).run(arrivals);
    const { iterations, contextTokens } = simulated;
    const requests = [...simulated.requests];
    expect([iterations, contextTokens]).toEqual([real.iterations, real.contextTokens]);
    expect(requests.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0)).toBe(real.reusedTokens);
    for (const [index, { worker, firstTokenMs, lastTokenMs }] of requests.entries()) {
      const one = real.seen[index]!;
      expect(worker).toBe(one.worker);
      // The simulation rounds to nanoseconds.
      expect(firstTokenMs).toBeCloseTo(one.firstTokenMs, 3);
      expect(lastTokenMs).toBeCloseTo(one.lastTokenMs, 3);
    }
  },
);
