import type { runBenchmark as RunBenchmark } from '../../../loadgen/index.js';

// The library is taken as it is built: worker processes are started from there.
const library = new URL('../../../dist/loadgen/index.js', import.meta.url).href;
const { runBenchmark } = (await import(library)) as { runBenchmark: typeof RunBenchmark };

const PROMPT_WORDS = 100;
const MAX_TOKENS = 64;

/** Runs this many streamed completions at once; returns the tokens that came. @throws Error where one is not whole. */
export async function streamAll(url: string, count: number): Promise<number> {
  const { runs } = await runBenchmark({
    url,
    backend: 'completions',
    fields: { temperature: 0 },
    arrivals: { kind: 'concurrency', concurrency: count },
    requests: count,
    data: {
      kind: 'random',
      inputTokens: { kind: 'fixed', tokens: PROMPT_WORDS },
      outputTokens: { kind: 'fixed', tokens: MAX_TOKENS },
    },
    workers: 1,
    warmup: 0,
    calibrate: false,
    scrape: false,
    cpuAffinity: false,
  });
  const { requests, tokens } = runs[0]!;
  if (tokens.fullLength.exact !== count) {
    throw new Error(`Of ${count} streams ${tokens.fullLength.exact} were whole: ${JSON.stringify(requests)}`);
  }
  return tokens.completion;
}
