import { ClusterSimulation } from '../../cluster/simulation/cluster-simulation.js';
import type { ClusterResult, Outage, RoutingPolicy } from '../../cluster/simulation/cluster-types.js';
import { drawnDeaths, rollingUpdate } from '../../cluster/simulation/outages.js';
import { sharedPrefixTrace } from '../../cluster/simulation/shared-prefixes.js';
import type { Spread } from '../../engine/simulation/batcher-simulation.js';
import { Random } from '../../loadgen/random.js';
import { clusterChart } from './cluster-chart.js';
import { type ClusterFlags, type ClusterLoad, clusterLoad } from './cluster-flags.js';

/** What came of one way of choosing workers. Times are in milliseconds. */
export interface PolicyResult {
  routing: RoutingPolicy;
  requests: number;
  promptTokens: number;
  /** Prompt tokens that the first worker of each request found in its cache. */
  cachedTokens: number;
  contextTokens: number;
  generatedTokens: number;
  firstTokenMs: Spread;
  lastTokenMs: Spread;
  /** Requests that went to more than one worker. */
  moved: number;
  mostWaiting: number;
  /** Share of the time until the last request ended in which the gateway's loop was busy. */
  gatewayBusy: number;
  iterations: number;
  endMs: number;
}

const EVENT_DELAY_MS = 5;
/** About what the gateways of the work queue take to notice that a process has ended. */
const NOTICE_MS = 2_000;
/** Independent random numbers of a seed. */
const STREAMS = { trace: 0, routing: 1, deaths: 2 } as const;

/** Runs skein simulate --workers N. @throws UsageError for a flag that is wrong */
export function simulateWorkers(flags: ClusterFlags): void {
  const load = clusterLoad(flags);
  const results = load.routing.map((routing) => {
    const beginMs = performance.now();
    const result = simulatePolicy(load, routing);
    const seconds = ((performance.now() - beginMs) / 1000).toFixed(1);
    const megabytes = Math.round(process.resourceUsage().maxRSS / 1024);
    process.stderr.write(
      `skein: ${routing}: ${result.iterations} iterations in ${seconds} s, ${megabytes} MB so far\n`,
    );
    return result;
  });
  process.stdout.write(flags.json ? `${JSON.stringify({ load, results })}\n` : clusterChart(load, results));
}

/** Simulates a load with one way of choosing workers. */
export function simulatePolicy(load: ClusterLoad, routing: RoutingPolicy): PolicyResult {
  const { workers, requests, rate, prefixes, prefixTokens, ownTokens, turns, pace } = load;
  const random = (stream: number) => {
    const source = new Random(load.seed, stream);
    return () => source.uniform();
  };
  const trace = sharedPrefixTrace({
    ...{ requests, rate, prefixes, prefixTokens, ownTokens, maxNewTokens: load.newTokens, turns },
    random: random(STREAMS.trace),
    sharesArrays: true,
  });
  const cluster = new ClusterSimulation({
    ...{ workers, routing, pace, eventDelayMs: EVENT_DELAY_MS, noticeMs: NOTICE_MS },
    random: random(STREAMS.routing),
    outages: outagesOf(load, random(STREAMS.deaths)),
    ...(Object.values(load.gateway).some((ms) => ms > 0) ? { gateway: load.gateway } : {}),
    worker: {
      policy: 'GUARANTEED_NO_EVICT',
      numBlocks: load.blocks,
      tokensPerBlock: load.tokensPerBlock,
      maxNumRequests: load.maxActiveRequests,
      microBatch: {
        maxBatchSize: load.maxActiveRequests,
        maxNumTokens: Math.max(2048, load.maxActiveRequests),
        chunking: { unit: load.tokensPerBlock, policy: 'EQUAL_PROGRESS' },
      },
    },
  });
  return summary(routing, cluster.run(take(trace, requests)));
}

function outagesOf(load: ClusterLoad, random: () => number): Outage[] {
  const { workers, deaths, rollingUpdate: atOnce, requests, rate } = load;
  const restartMs = 1000 * load.restartSeconds;
  return [
    ...drawnDeaths({ deaths, workers, untilMs: (1000 * requests) / rate, restartMs, random }),
    ...(atOnce === 0 ? [] : rollingUpdate({ atOnce, workers, restartMs })),
  ];
}

/** The last conversation may have more turns than requests are wanted. */
function* take<T>(items: Iterable<T>, count: number): Generator<T> {
  let taken = 0;
  for (const item of items) {
    if (taken === count) return;
    taken += 1;
    yield item;
  }
}

function summary(routing: RoutingPolicy, result: ClusterResult): PolicyResult {
  const { requests, contextTokens, generatedTokens, mostWaiting, gatewayBusyMs, iterations, endMs } = result;
  let [promptTokens, cachedTokens, moved] = [0, 0, 0];
  for (const one of requests) {
    promptTokens += one.promptTokens;
    cachedTokens += one.cachedTokens;
    if (one.attempts > 1) moved += 1;
  }
  return {
    routing,
    requests: requests.length,
    promptTokens,
    cachedTokens,
    contextTokens,
    generatedTokens,
    firstTokenMs: spreadOf(requests.firstTokenMs),
    lastTokenMs: spreadOf(requests.lastTokenMs),
    moved,
    mostWaiting,
    gatewayBusy: gatewayBusyMs / endMs,
    iterations,
    endMs,
  };
}

function spreadOf(values: Float64Array): Spread {
  const sorted = values.slice().sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length;
  return { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: sorted.at(-1)! };
}
