import { CacheRouter } from '../../../cluster/routing/cache-router.js';
import type { ClusterArrival } from '../../../cluster/simulation/cluster-types.js';
import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import { seededRandom } from '../../support/random.js';
import { median, percentile } from '../../support/statistics.js';
import { takeRounds } from '../../support/take-rounds.js';
import { compiled } from '../compiled.js';

type HostModule = typeof import('../../../host/in-process-host.js');
type FindEnginesModule = typeof import('../../../src/serving/find-engines.js');
type Host = InstanceType<HostModule['InProcessHost']>;

const NUM_WORKERS = 3;
const TOKENS_PER_BLOCK = 32;
/** All beginnings fit into the three of them together, and not into each: what is sent anywhere is computed again and again. */
const CACHE_TOKENS = 4096;
const TRACE = {
  ...{ requests: 96, rate: 8, prefixes: 24, prefixTokens: 384, ownTokens: 32, maxNewTokens: 8, turns: 2 },
};
/** A request to each worker at once: where more wait, their waiting is most of what is measured. */
const NUM_CLIENTS = NUM_WORKERS;
const PACE = { blockTime: 1, requestTime: 2 };
const SEED = 27;

type Policy = 'random' | 'cache';

/** What one way of choosing a worker did in one round. */
export interface RealRound {
  /** Share of the prompt tokens. */
  found: number;
  firstTokenMs: number[];
  processorSeconds: number;
}

/** Two ways of choosing, in turns: rounds of the same number ran one after the other. */
export type RealResults = Readonly<Record<Policy, RealRound[]>>;

export const REAL_CONDITIONS = `${NUM_WORKERS} workers of a thread, ${TRACE.requests} requests, ${NUM_CLIENTS} at once, ${TRACE.prefixes} system prompts of ${TRACE.prefixTokens} tokens, ${TRACE.turns} turns of ${TRACE.ownTokens}, ${TRACE.maxNewTokens} new tokens, caches of ${CACHE_TOKENS / TOKENS_PER_BLOCK} blocks`;

/** Sends one trace to real workers at random and by caches, all with empty caches at first. */
export async function measureRealWorkers(
  model: string,
  rounds: number,
  progress: (line: string) => void,
): Promise<RealResults> {
  const arrivals = [...sharedPrefixTrace({ ...TRACE, random: seededRandom(SEED) })].slice(0, TRACE.requests);
  const workers = await RealWorkers.start(model);
  try {
    const results: RealResults = { random: [], cache: [] };
    await workers.run('random', arrivals.slice(0, 2 * NUM_WORKERS));
    await takeRounds(['random', 'cache'] as const, rounds, async (policy, round) => {
      const one = await workers.run(policy, arrivals);
      results[policy].push(one);
      const { found, firstTokenMs, processorSeconds } = one;
      progress(
        `round ${round + 1} of ${rounds}, ${policy}: ${(100 * found).toFixed(1)} % found, first token ${median(firstTokenMs).toFixed(0)} ms, ${processorSeconds.toFixed(1)} s of processor time`,
      );
    });
    return results;
  } finally {
    await workers.close();
  }
}

/** How many times as much random choice has of it as choice by caches: the median of the rounds' ratios. */
export function ratioOf({ random, cache }: RealResults, of: (round: RealRound) => number): number {
  return median(random.map((round, index) => of(round) / of(cache[index]!)));
}

export const meanOf = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The results in a sentence. */
export function realSentence(results: RealResults): string {
  const found = (policy: Policy) =>
    `${(100 * median(results[policy].map((round) => round.found))).toFixed(1)} %`;
  const first = (policy: Policy, share: number) =>
    `${(median(results[policy].map(({ firstTokenMs }) => percentile(firstTokenMs, share))) / 1000).toFixed(2)} s`;
  const times = (of: (round: RealRound) => number) => ratioOf(results, of).toFixed(1);
  return (
    `by caches the first token of all requests on average came ${times(({ firstTokenMs }) => meanOf(firstTokenMs))} times as soon as at random ` +
    `(p50 ${first('cache', 0.5)} and ${first('random', 0.5)}, p90 ${first('cache', 0.9)} and ${first('random', 0.9)}), with ${found('cache')} and ${found('random')} of the prompt tokens found, ` +
    `and random choice took ${times(({ processorSeconds }) => processorSeconds)} times the processor time (medians of ${results.random.length} rounds in turns)`
  );
}

/** Engines of one model in this process, each in a thread of its own with a cache of its own. */
class RealWorkers {
  readonly #hosts: readonly Host[];
  #router: CacheRouter;

  private constructor(HostClass: HostModule['InProcessHost'], enginePath: string) {
    this.#hosts = Array.from(
      { length: NUM_WORKERS },
      (_, index) =>
        new HostClass({
          ...{ modelType: 'InflightFusedBatching', maxBeamWidth: 1, schedulerPolicy: 'GUARANTEED_NO_EVICT' },
          enginePath,
          optionalParams: {
            ...{
              threads: 1,
              maxNumSequences: 8,
              enableChunkedContext: true,
              tokensPerBlock: TOKENS_PER_BLOCK,
              maxSeqLen: 1024,
            },
            kvCacheConfig: { maxTokens: CACHE_TOKENS, enableBlockReuse: true },
          },
          onKvCacheEvents: (events) => this.#router.note(`${index}`, events),
        }),
    );
    this.#router = this.#newRouter();
  }

  static async start(model: string): Promise<RealWorkers> {
    const { InProcessHost } = await compiled<HostModule>('host/in-process-host.js');
    const { findEngines } = await compiled<FindEnginesModule>('src/serving/find-engines.js');
    const { engine } = await findEngines({ model });
    const workers = new RealWorkers(InProcessHost, engine.directory);
    await Promise.all(workers.#hosts.map((host) => host.ready));
    return workers;
  }

  /** Empties the caches, and sends the requests in their order, each as soon as a client is free. */
  async run(policy: Policy, arrivals: readonly ClusterArrival[]): Promise<RealRound> {
    await Promise.all(this.#hosts.map((host) => host.resetCache()));
    this.#router = this.#newRouter();
    const random = seededRandom(SEED + 1);
    const left = arrivals.entries();
    const begin = process.cpuUsage();
    const firstTokenMs: number[] = [];
    let cachedTokens = 0;
    const client = async (): Promise<void> => {
      // All clients take from one iterator.
      for (const [request, arrival] of left) {
        const id = `${request}`;
        const hashes = promptHashes({ salt: 0n }, arrival.tokens, TOKENS_PER_BLOCK);
        const index =
          policy === 'random'
            ? Math.floor(random() * NUM_WORKERS)
            : Number(this.#router.route({ id, hashes })!.worker);
        const seen = await this.#send(this.#hosts[index]!, arrival, () => this.#router.firstToken(id));
        this.#router.end(id);
        firstTokenMs.push(seen.firstTokenMs);
        cachedTokens += seen.cachedTokens;
      }
    };
    await Promise.all(Array.from({ length: NUM_CLIENTS }, client));
    const { user, system } = process.cpuUsage(begin);
    const promptTokens = arrivals.reduce((sum, { tokens }) => sum + tokens.length, 0);
    return { found: cachedTokens / promptTokens, firstTokenMs, processorSeconds: (user + system) / 1e6 };
  }

  async #send(
    host: Host,
    { tokens, maxNewTokens }: ClusterArrival,
    onFirstToken: () => void,
  ): Promise<{ firstTokenMs: number; cachedTokens: number }> {
    const beginMs = performance.now();
    let firstTokenMs = Number.NaN;
    let cachedTokens = 0;
    for await (const piece of host.submit({ promptTokens: tokens, maxNewTokens, topK: 1 })) {
      cachedTokens += piece.cachedTokens ?? 0;
      if (!Number.isNaN(firstTokenMs) || piece.tokens.length === 0) continue;
      firstTokenMs = performance.now() - beginMs;
      onFirstToken();
    }
    return { firstTokenMs, cachedTokens };
  }

  async close(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.close({ abort: true })));
  }

  #newRouter(): CacheRouter {
    const router = new CacheRouter(PACE);
    for (let index = 0; index < NUM_WORKERS; index += 1) router.add(`${index}`);
    return router;
  }
}
