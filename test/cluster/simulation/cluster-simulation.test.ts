import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClusterSimulation } from '../../../cluster/simulation/cluster-simulation.js';
import {
  type ClusterArrival,
  type ClusterOptions,
  type Outage,
  ROUTING_POLICIES,
  type RoutingPolicy,
} from '../../../cluster/simulation/cluster-types.js';
import { EventQueue } from '../../../cluster/simulation/event-queue.js';
import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { Random } from '../../../tools/support/random.js';

const random = (seed: number) => {
  const source = new Random(seed);
  return () => source.uniform();
};
const trace = (requests: number, rate = 40) => [
  ...sharedPrefixTrace({
    ...{ requests, rate, prefixes: 12, prefixTokens: 128, ownTokens: 24, maxNewTokens: 12, turns: 2 },
    random: random(1),
  }),
];
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
const run = (arrivals: ClusterArrival[], more: Partial<ClusterOptions> = {}) => {
  const result = new ClusterSimulation(options(more)).run(arrivals);
  return { ...result, requests: [...result.requests] };
};
const outagesOf = (draw: () => number, endMs: number): Outage[] =>
  Array.from({ length: 6 }, () => {
    const atMs = draw() * endMs;
    const worker = Math.floor(draw() * 4);
    return { worker, atMs, backAtMs: atMs + 200 + draw() * 2000, kind: draw() < 0.5 ? 'death' : 'update' };
  });
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

  it('ends every request once, whoever dies or is updated, with every policy', () => {
    const arrivals = trace(240, 80);
    let moved = 0;
    const endMs = arrivals.at(-1)!.atMs;
    for (const [index, routing] of [...ROUTING_POLICIES, ...ROUTING_POLICIES].entries()) {
      const draw = random(index + 1);
      const { requests, contextTokens, generatedTokens } = run(arrivals, {
        ...{ outages: outagesOf(draw, endMs), routing, random: draw, noticeMs: index % 2 === 0 ? 0 : 300 },
      });
      expect(
        requests.every(({ firstTokenMs, lastTokenMs }) => firstTokenMs > 0 && lastTokenMs >= firstTokenMs),
      ).toBe(true);
      moved += requests.filter(({ attempts }) => attempts > 1).length;
      expect(contextTokens).toBeGreaterThan(0);
      expect(generatedTokens).toBe(12 * arrivals.length);
    }
    expect(moved).toBeGreaterThan(10);
    const all = [0, 1, 2, 3].map((worker) => ({
      worker,
      atMs: 100,
      backAtMs: 5000,
      kind: 'update' as const,
    }));
    for (const routing of ROUTING_POLICIES) {
      const { requests, mostWaiting } = run(arrivals, { outages: all, routing });
      expect(requests.every(({ lastTokenMs }) => lastTokenMs > 0)).toBe(true);
      expect(mostWaiting).toBeGreaterThan(50);
    }
    const small = { workers: 1, worker: { ...options().worker, numBlocks: 4 } };
    expect(() => run(arrivals, small)).toThrow('Request 0 can never run');
    const gone = all.map((one) => ({ ...one, backAtMs: Number.POSITIVE_INFINITY }));
    for (const routing of ['cache', 'queue', 'queue-cache'] as const) {
      expect(() => run(arrivals, { outages: gone, routing })).toThrow('requests found no worker');
    }
    expect(() => run([...arrivals].reverse())).toThrow('Request 1 comes before the one in front of it.');
  });

  it('are the same whether each iteration is run by itself or steady ones at once', () => {
    let saved = 0;
    const case_ = fc.record({
      seed: fc.integer({ min: 1, max: 1e6 }),
      routing: fc.constantFrom(...ROUTING_POLICIES),
      workers: fc.integer({ min: 1, max: 5 }),
      policy: fc.constantFrom('GUARANTEED_NO_EVICT' as const, 'MAX_UTILIZATION' as const),
      numBlocks: fc.integer({ min: 24, max: 80 }),
      rate: fc.constantFrom(20, 60, 400),
      // Whole milliseconds: then much happens at the same time.
      roundTo: fc.constantFrom(0.001, 1, 10),
      maxNewTokens: fc.integer({ min: 1, max: 40 }),
      numOutages: fc.integer({ min: 0, max: 6 }),
      noticeMs: fc.constantFrom(0, 7, 200),
    });
    fc.assert(
      fc.property(case_, ({ seed, roundTo, rate, maxNewTokens, numOutages, policy, numBlocks, ...more }) => {
        const draw = random(seed);
        const arrivals = [
          ...sharedPrefixTrace({
            ...{ requests: 40, rate, prefixes: 4, prefixTokens: 40, ownTokens: 10, maxNewTokens, turns: 2 },
            random: draw,
          }),
        ].map((one) => ({ ...one, atMs: roundTo * Math.floor(one.atMs / roundTo) }));
        const rounded = (ms: number) => roundTo * Math.floor(ms / roundTo);
        const outages = outagesOf(draw, arrivals.at(-1)!.atMs)
          .slice(0, numOutages)
          .map(({ worker, atMs, backAtMs, kind }) => ({
            ...{ worker: worker % more.workers, atMs: rounded(atMs), backAtMs: rounded(backAtMs), kind },
          }));
        const worker = { ...options().worker, policy, numBlocks };
        const result = (stepsAll: boolean) =>
          run(arrivals, { ...more, worker, outages, stepsAll, random: random(seed) });
        const [each, atOnce] = [result(true), result(false)];
        expect(atOnce).toEqual(each);
        saved += each.iterations;
      }),
      { numRuns: 60 },
    );
    expect(saved).toBeGreaterThan(500);
  });

  it('are the same behind a gateway whose loop takes no time as without one', () => {
    const gateway = { requestMs: 0, tokenMs: 0, messageMs: 0 };
    for (const [seed, routing] of (['queue', 'queue-cache', 'queue', 'queue-cache'] as const).entries()) {
      // Half of the times are whole milliseconds: then much happens at the same time.
      const arrivals = trace(160, 100).map((one) => ({
        ...{ ...one, atMs: seed < 2 ? Math.floor(one.atMs) : one.atMs },
      }));
      const outages = outagesOf(random(seed + 1), arrivals.at(-1)!.atMs);
      const more = { routing, outages, noticeMs: 7, workers: 4 };
      expect(run(arrivals, { ...more, gateway })).toEqual(run(arrivals, more));
    }
  });

  it('wait for a gateway whose loop takes longer than there is time, however many they are', () => {
    const tokens = (index: number) => Int32Array.from({ length: 20 }, (_, place) => 1000 * index + place);
    // A hundred a second.
    const arrivals = Array.from({ length: 200 }, (_, index) => ({
      ...{ atMs: 10 * index, tokens: tokens(index), maxNewTokens: 2 },
    }));
    const free = { requestMs: 0, tokenMs: 0, messageMs: 0 };
    const costs = [
      { ...free, requestMs: 20 },
      { ...free, tokenMs: 10 },
      { ...free, messageMs: 10 },
    ];
    for (const routing of ['queue', 'queue-cache'] as const) {
      const by = (workers: number, gateway = free) => run(arrivals, { routing, workers, gateway });
      const lastOf = ({ requests }: ReturnType<typeof run>) => requests.at(-1)!.firstTokenMs;
      expect(lastOf(by(8))).toBeLessThan(50);
      for (const gateway of costs) {
        const [few, many] = [by(8, gateway), by(16, gateway)];
        // 20 ms each, of which 10 pass until the next one comes; fewer where a message has tokens of several.
        expect(lastOf(few)).toBeGreaterThan(1000);
        expect(lastOf(many)).toBeGreaterThan(1000);
        expect(few.gatewayBusyMs / few.endMs).toBeGreaterThan(0.9);
        expect(few.iterations).toBeGreaterThan(300);
      }
      // Half as much is no more than there is time for.
      expect(lastOf(by(8, { ...free, requestMs: 9 }))).toBeLessThan(60);
    }
    // A router is no gateway.
    const routed = run(arrivals, { routing: 'cache', workers: 8, gateway: costs[0]! });
    expect([routed.gatewayBusyMs, routed.requests.at(-1)!.firstTokenMs < 50]).toEqual([0, true]);
  });

  it('take requests from the queue in turn, as they have room', () => {
    const tokens = (index: number) => Int32Array.from({ length: 20 }, (_, place) => 1000 * index + place);
    const arrivals = Array.from({ length: 12 }, (_, index) => ({
      atMs: 1,
      tokens: tokens(index),
      maxNewTokens: 4,
    }));
    const worker = { ...options().worker, maxNumRequests: 2 };
    const { requests, mostWaiting } = run(arrivals, { routing: 'queue', workers: 3, worker });
    expect(requests.slice(0, 6).map((one) => one.worker)).toEqual([0, 1, 2, 0, 1, 2]);
    // 3 workers with 2 places each: 6 run, and the other 6 wait.
    expect(mostWaiting).toBe(6);
    expect(requests.slice(6).every((one) => one.firstTokenMs > requests[0]!.lastTokenMs - 1)).toBe(true);
  });

  it('take requests from the queue where they are cached, as they have room', () => {
    const tokens = (index: number) =>
      Int32Array.from({ length: 20 }, (_, place) => 1000 * (index % 3) + place);
    const arrivals = Array.from({ length: 12 }, (_, index) => ({
      ...{ atMs: index < 3 ? 1 : 1000, tokens: tokens(index), maxNewTokens: 4 },
    }));
    const worker = { ...options().worker, maxNumRequests: 2 };
    const { requests, mostWaiting } = run(arrivals, { routing: 'queue-cache', workers: 3, worker });
    const workers = [...requests].map((one) => one.worker);
    // Where one beginning is, the others with it go, two at once.
    expect(new Set(workers.slice(0, 3)).size).toBe(3);
    expect(workers.slice(3, 9)).toEqual([...workers.slice(0, 3), ...workers.slice(0, 3)]);
    expect(mostWaiting).toBeGreaterThanOrEqual(3);
  });

  it('has events in the order of their times, equal ones by rank, and then in that of their coming', () => {
    const draw = random(3);
    const queue = new EventQueue<number>();
    const times = Array.from({ length: 500 }, () => Math.floor(draw() * 40));
    for (const [index, time] of times.entries()) queue.push(time, index, index % 3);
    const popped = Array.from({ length: 500 }, () => queue.pop()!);
    const expected = times
      .map((at, event) => ({ at, event }))
      .sort((a, b) => a.at - b.at || (a.event % 3) - (b.event % 3) || a.event - b.event);
    expect(popped.map(({ at, event }) => ({ at, event }))).toEqual(expected);
    expect([queue.pop(), queue.size, queue.nextAt]).toEqual([undefined, 0, Number.POSITIVE_INFINITY]);
  });
});
