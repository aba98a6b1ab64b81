import { expect, it } from 'vitest';
import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { Response } from '../../../callbacks/unpack-responses.js';
import { CacheRouter } from '../../../cluster/routing/cache-router.js';
import { ClusterSimulation } from '../../../cluster/simulation/cluster-simulation.js';
import type { ClusterArrival, Pace } from '../../../cluster/simulation/cluster-types.js';
import { EventQueue } from '../../../cluster/simulation/event-queue.js';
import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import { LoopHarness, makeRequest, tensorOf } from '../../../tools/support/loop-harness.js';
import { Random } from '../../../tools/support/random.js';
import { PlainQueue, PlainRoutedQueue, type WorkerState } from './plain-queue.js';

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

type Policy = 'random' | 'cache' | 'queue' | 'queue-cache';

/** Real generation loops over executors that compute, each iteration as long as the pace says, on a clock of the test. */
class Loops {
  readonly totals: Totals;
  readonly #loops: LoopHarness[];
  readonly #isBusy: boolean[];
  /** Requests of each loop that have not begun, and all that it has. */
  readonly #waiting: Set<bigint>[];
  readonly #states: WorkerState[];
  readonly #events = new EventQueue<() => void>();
  readonly #router = new CacheRouter({
    blockTime: TOKENS_PER_BLOCK * PACE.contextTokenMs,
    requestTime: 100 * PACE.generationMs,
  });
  readonly queue: PlainQueue | PlainRoutedQueue | null;

  constructor(
    readonly arrivals: readonly ClusterArrival[],
    workers: number,
    policy: Policy,
  ) {
    this.totals = {
      seen: arrivals.map(() => ({ worker: -1, firstTokenMs: Number.NaN, lastTokenMs: Number.NaN })),
      ...{ iterations: 0, contextTokens: 0, reusedTokens: 0 },
    };
    this.#loops = Array.from({ length: workers }, () => {
      const options = { ...POOL, maxNumSequences: NUM_PLACES, maxSeqLen: 320, fake: { vocabSize: 3000 } };
      return new LoopHarness({
        ...options,
        ...{ enableBlockReuse: true, chunkingPolicy: 'EQUAL_PROGRESS' as const, maxEvents: 10_000 },
      });
    });
    this.#isBusy = this.#loops.map(() => false);
    this.#waiting = this.#loops.map(() => new Set());
    this.#states = this.#loops.map(() => ({ held: 0, waiting: 0 }));
    for (const index of this.#loops.keys()) this.#router.add(`${index}`);
    const give = (nowMs: number, request: number, index: number) => this.#give(nowMs, request, index);
    const route = (request: number, mayHave: (worker: string) => boolean) => this.#route(request, mayHave);
    if (policy === 'queue') this.queue = new PlainQueue(NUM_PLACES, this.#states, this.#events, give);
    else if (policy === 'queue-cache')
      this.queue = new PlainRoutedQueue(NUM_PLACES, this.#states, route, give);
    else this.queue = null;
  }

  /** @param random chooses where there is neither a queue nor a router */
  run(policy: Policy, random: () => number): this {
    let numLeft = this.arrivals.length;
    for (const [request, { atMs }] of this.arrivals.entries()) {
      this.#events.push(atMs, () => {
        numLeft -= 1;
        if (this.queue !== null) {
          this.queue.add(atMs, request);
          return;
        }
        const index = policy === 'random' ? Math.floor(random() * this.#loops.length) : this.#route(request);
        this.#give(atMs, request, index);
      });
    }
    // Workers never cease to ask.
    while (numLeft > 0 || this.#states.some(({ held }) => held > 0)) this.#events.pop()!.event();
    return this;
  }

  #route(request: number, mayHave?: (worker: string) => boolean): number {
    const hashes = promptHashes({ salt: 0n }, this.arrivals[request]!.tokens, TOKENS_PER_BLOCK);
    return Number(this.#router.route({ id: `${request}`, hashes }, mayHave)!.worker);
  }

  #give(nowMs: number, request: number, index: number): void {
    const { tokens, maxNewTokens } = this.arrivals[request]!;
    this.#loops[index]!.waiting.push(makeRequest(BigInt(request), [...tokens], maxNewTokens));
    this.#waiting[index]!.add(BigInt(request));
    this.#states[index]!.held += 1;
    this.#begin(index, nowMs);
  }

  #begin(index: number, nowMs: number): void {
    const harness = this.#loops[index]!;
    const waiting = this.#waiting[index]!;
    if (!this.#isBusy[index]) {
      harness.stats.length = 0;
      harness.responses.length = 0;
      harness.loop.iterate();
      for (const { began, paused } of harness.turns.splice(0)) {
        for (const id of began) waiting.delete(id);
        for (const id of paused) waiting.add(id);
      }
      const [stats] = harness.stats;
      if (stats !== undefined) this.#endLater(index, nowMs, stats, [...harness.responses]);
    }
    this.#states[index]!.waiting = waiting.size;
  }

  #endLater(index: number, nowMs: number, stats: IterationStats, responses: readonly Response[]): void {
    this.#isBusy[index] = true;
    const cacheEvents = this.#loops[index]!.kvEvents.splice(0);
    const { contextTokens, generationRequests, reusedTokens } = stats;
    const endMs =
      nowMs + PACE.iterationMs + contextTokens * PACE.contextTokenMs + generationRequests * PACE.generationMs;
    this.#events.push(endMs, () => {
      this.#isBusy[index] = false;
      this.totals.iterations += 1;
      this.totals.contextTokens += contextTokens;
      this.totals.reusedTokens += reusedTokens;
      for (const response of responses) this.#note(index, endMs, response);
      this.#events.push(endMs + EVENT_DELAY_MS, () => this.#router.note(`${index}`, cacheEvents));
      this.#begin(index, endMs);
      this.queue?.ask(endMs, index);
      this.queue?.deliver(endMs);
    });
  }

  #note(index: number, nowMs: number, { requestId, outputs, final, error }: Response): void {
    expect(error).toBe('');
    const one = this.totals.seen[Number(requestId)]!;
    const { atMs } = this.arrivals[Number(requestId)]!;
    if (tensorOf(outputs, 'output_ids')!.data.length > 0 && Number.isNaN(one.firstTokenMs)) {
      one.firstTokenMs = nowMs - atMs;
      one.worker = index;
      this.#router.firstToken(`${requestId}`);
    }
    if (!final) return;
    one.lastTokenMs = nowMs - atMs;
    this.#states[index]!.held -= 1;
    this.#router.end(`${requestId}`);
  }
}

it.each([
  [2, 'random', 40],
  [2, 'cache', 40],
  [2, 'queue', 40],
  [2, 'queue', 400],
  [3, 'cache', 90],
  [3, 'queue', 90],
  [2, 'queue-cache', 400],
  [3, 'queue-cache', 90],
  [4, 'queue-cache', 200],
  [4, 'random', 200],
  [4, 'cache', 200],
  [4, 'queue', 200],
] as const)(
  '%i simulated workers do what as many real loops do, by %s at %i requests a second',
  (workers, routing, rate) => {
    const arrivals = arrivalsOf(rate);
    const loops = new Loops(arrivals, workers, routing).run(routing, uniform(9));
    const real = loops.totals;
    // Questions expire while conversations are thought about, and are asked again.
    if (loops.queue instanceof PlainQueue) expect(loops.queue.numExpired).toBeGreaterThan(workers);
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
    const { iterations, contextTokens, mostWaiting } = simulated;
    if (rate === 400) expect(mostWaiting).toBeGreaterThan(2 * workers);
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
