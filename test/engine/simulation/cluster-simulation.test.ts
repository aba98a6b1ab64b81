import { describe, expect, it } from 'vitest';
import {
  type ClusterArrival,
  type ClusterOptions,
  ClusterSimulation,
  type RoutingPolicy,
} from '../../../engine/simulation/cluster-simulation.js';
import { EventQueue } from '../../../engine/simulation/event-queue.js';
import { sharedPrefixTrace } from '../../../tools/bench/routing/shared-prefixes.js';
import { Random } from '../../../tools/support/random.js';

const random = (seed: number) => {
  const source = new Random(seed);
  return () => source.uniform();
};
const trace = (requests: number, rate = 40) =>
  sharedPrefixTrace({
    ...{ requests, rate, prefixes: 12, prefixTokens: 128, ownTokens: 24, maxNewTokens: 12, turns: 2 },
    random: random(1),
  });
const options = (more: Partial<ClusterOptions> = {}): ClusterOptions => ({
  workers: 4,
  worker: {
    ...{ policy: 'GUARANTEED_NO_EVICT', numBlocks: 80, tokensPerBlock: 8, maxNumRequests: 16 },
    microBatch: { maxBatchSize: 16, maxNumTokens: 512 },
  },
  pace: { iterationMs: 1, contextTokenMs: 0.5, generationMs: 1 },
  routing: 'cache',
  eventDelayMs: 2,
  random: random(2),
  ...more,
});
const run = (arrivals: ClusterArrival[], more: Partial<ClusterOptions> = {}) =>
  new ClusterSimulation(options(more), arrivals).run();
const hits = (result: ReturnType<typeof run>) =>
  result.requests.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);

describe('several simulated workers behind a router', () => {
  it('find half as many tokens more by caches than at random', () => {
    const arrivals = trace(600);
    const by = (routing: RoutingPolicy) => run(arrivals, { routing, random: random(2) });
    const [cache, chance, shortest] = [by('cache'), by('random'), by('fewest-requests')];
    expect(hits(cache)).toBeGreaterThan(1.5 * hits(chance));
    expect(hits(cache)).toBeGreaterThan(1.5 * hits(shortest));
    const mean = ({ requests }: typeof cache) =>
      requests.reduce((sum, { firstTokenMs }) => sum + firstTokenMs, 0) / requests.length;
    expect(mean(cache)).toBeLessThan(mean(chance));
    expect(by('cache')).toEqual(cache);
  });

  it('takes the time that its pace says', () => {
    const tokens = Int32Array.from({ length: 100 }, (_, index) => index);
    const arrivals = [
      { atMs: 10, tokens, maxNewTokens: 3 },
      { atMs: 1000, tokens, maxNewTokens: 1 },
    ];
    const { requests, iterations, contextTokens } = run(arrivals, { workers: 1 });
    expect(requests).toMatchObject([
      // 1 + 100 x 0.5, then two iterations of 1 + 1.
      { worker: 0, firstTokenMs: 51, lastTokenMs: 55, cachedTokens: 0, attempts: 1 },
      // 12 full blocks are in the cache: 4 tokens are left.
      { worker: 0, firstTokenMs: 3, lastTokenMs: 3, cachedTokens: 96, attempts: 1 },
    ]);
    expect([iterations, contextTokens]).toEqual([4, 104]);
  });

  it('ends every request once, whoever dies', () => {
    const arrivals = trace(300, 80);
    let moved = 0;
    const endMs = arrivals.at(-1)!.atMs;
    for (let seed = 1; seed <= 8; seed += 1) {
      const draw = random(seed);
      const deaths = Array.from({ length: 6 }, () => {
        const atMs = draw() * endMs;
        return { worker: Math.floor(draw() * 4), atMs, backAtMs: atMs + 200 + draw() * 2000 };
      });
      const routing = seed % 2 === 0 ? 'cache' : 'random';
      const { requests, contextTokens } = run(arrivals, { deaths, routing, random: draw });
      expect(
        requests.every(({ firstTokenMs, lastTokenMs }) => firstTokenMs > 0 && lastTokenMs >= firstTokenMs),
      ).toBe(true);
      moved += requests.filter(({ attempts }) => attempts > 1).length;
      expect(contextTokens).toBeGreaterThan(0);
    }
    expect(moved).toBeGreaterThan(10);
    const all = [0, 1, 2, 3].map((worker) => ({ worker, atMs: 100, backAtMs: 5000 }));
    expect(run(arrivals, { deaths: all }).requests.every(({ lastTokenMs }) => lastTokenMs > 0)).toBe(true);
    expect(() => run(arrivals, { workers: 1, worker: { ...options().worker, numBlocks: 4 } })).toThrow(
      'Request 0 can never run',
    );
  });

  it('has events in the order of their times, equal ones in that of their coming', () => {
    const draw = random(3);
    const queue = new EventQueue<number>();
    const times = Array.from({ length: 500 }, () => Math.floor(draw() * 40));
    for (const [index, time] of times.entries()) queue.push(time, index);
    const popped = Array.from({ length: 500 }, () => queue.pop()!);
    const expected = times
      .map((atMs, event) => ({ atMs, event }))
      .sort((a, b) => a.atMs - b.atMs || a.event - b.event);
    expect(popped.map(({ atMs, event }) => ({ atMs, event }))).toEqual(expected);
    expect([queue.pop(), queue.size]).toEqual([undefined, 0]);
  });
});
