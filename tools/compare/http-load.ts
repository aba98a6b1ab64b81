import type { runBenchmark as RunBenchmark } from '../../loadgen/index.js';

// The library is taken as it is built: worker processes are started from there.
const library = new URL('../../dist/loadgen/index.js', import.meta.url).href;
const { runBenchmark } = (await import(library)) as { runBenchmark: typeof RunBenchmark };

/** Measurements of a closed loop of streaming chat clients. Milliseconds; latencies over all requests or all gaps. */
export interface HttpRates {
  clients: number;
  /** Generated tokens, as the server counts them, over the time from the first request to the last answer. */
  tokensPerSecond: number;
  firstTokenP50: number;
  firstTokenP99: number;
  /** Between two pieces of one answer. */
  interTokenP50: number;
  interTokenP99: number;
  failed: number;
}

export interface HttpLoad {
  /** Base URL of an OpenAI-compatible server. */
  url: string;
  model: string;
  clients: number;
  /** Requests of each client, one after the other. */
  requests: number;
  /** Words of each prompt; every prompt has other words, so that no cache of prompts helps. */
  promptWords: number;
  generate: number;
  /** Seed of the prompts' words (default 0): another seed, other prompts. */
  seed?: number;
  /** llama-server ends its own after a stream, and resets a request that comes first. */
  keepAlive?: boolean;
}

/**
 * Keeps `clients` streams open, from a worker process of the load generator, until each client has had its
 * answers (all share them: a client that is free asks next). Greedy, `generate` tokens each. Warns on stderr
 * where the client was the limit.
 */
export async function loadHttp(load: HttpLoad): Promise<HttpRates> {
  const { runs } = await runBenchmark({
    url: load.url,
    model: load.model,
    fields: { temperature: 0 },
    arrivals: { kind: 'concurrency', concurrency: load.clients },
    requests: load.clients * load.requests,
    data: {
      kind: 'random',
      inputTokens: { kind: 'fixed', tokens: load.promptWords },
      outputTokens: { kind: 'fixed', tokens: load.generate },
    },
    seed: load.seed ?? 0,
    keepAlive: load.keepAlive ?? false,
    workers: 1,
    warmup: 0,
    // A word is a word for every server, and nothing but the load is asked of it.
    calibrate: false,
    scrape: false,
    cpuAffinity: false,
  });
  const { requests, throughput, latencies, client } = runs[0]!;
  for (const { isBottleneck, message } of client.findings) if (isBottleneck) console.error(message);
  return {
    clients: load.clients,
    tokensPerSecond: throughput.outputTokens,
    firstTokenP50: latencies.ttft.p50 ?? Number.NaN,
    firstTokenP99: latencies.ttft.p99 ?? Number.NaN,
    interTokenP50: latencies.itl.p50 ?? Number.NaN,
    interTokenP99: latencies.itl.p99 ?? Number.NaN,
    failed: requests.total - requests.outcomes.completed,
  };
}
