import { runOwnBenchmark } from '../../loadgen/benchmark.js';
import type { BenchOptions } from '../../loadgen/options.js';
import type { RunReport } from '../../loadgen/report/schema.js';
import { UsageError } from '../errors/user-errors.js';
import { flagName } from '../options/table.js';
import { type BenchFlags, benchOptionsOf } from './bench-flags.js';

/** Flags that a quick run takes: who is asked, how, and for how long. */
const TAKEN = [
  ...['model', 'backend', 'path', 'apiKey', 'header', 'ca', 'insecure', 'body', 'duration', 'quiet', 'yes'],
  ...['stream', 'ignoreEos', 'keepAlive', 'cpuAffinity', 'calibrate', 'scrape', 'quick'],
];

interface Load {
  title: string;
  clients: number;
  inputTokens: number;
  outputTokens: number;
  /** Share of the time in which requests begin. */
  share: number;
}

/** Seconds of all loads, in which requests begin; ten with what asks a server before each. */
const SECONDS = 7.5;

const LOADS: readonly Load[] = [
  { title: 'one client', clients: 1, inputTokens: 64, outputTokens: 64, share: 0.35 },
  { title: '8 clients', clients: 8, inputTokens: 64, outputTokens: 64, share: 0.4 },
  { title: 'prompts of 512', clients: 1, inputTokens: 512, outputTokens: 1, share: 0.25 },
];

/**
 * Returns the lines of skein bench URL --quick, one for each of three loads, as they come.
 *
 * @throws UsageError for other flags, Error where the server does not answer
 */
export async function* quickBench(
  url: string,
  flags: BenchFlags,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (const [name, value] of Object.entries(flags))
    if (value !== undefined && !TAKEN.includes(name))
      throw new UsageError(`--${flagName(name)} is not for --quick, which has loads of its own.`);
  const base = benchOptionsOf(url, { ...flags, scrape: false }, process.env);
  for (const load of LOADS) {
    const duration = load.share * (base.duration ?? SECONDS);
    const { runs } = await runOwnBenchmark({ ...base, ...optionsOf(load), duration }, { signal });
    if (signal.aborted) throw new Error(`The run was cut off (${(signal.reason as Error).message}).`);
    yield `${load.title.padEnd(16)}${lineOf(load, runs[0]!)}\n`;
  }
}

function optionsOf({ clients, inputTokens, outputTokens }: Load): Partial<BenchOptions> {
  const fixed = (tokens: number) => ({ kind: 'fixed' as const, tokens });
  return {
    arrivals: { kind: 'concurrency', concurrency: clients },
    data: { kind: 'random', inputTokens: fixed(inputTokens), outputTokens: fixed(outputTokens) },
    warmup: 1,
  };
}

function lineOf(
  { outputTokens }: Load,
  { requests, throughput, latencies, tokens, seconds }: RunReport,
): string {
  const failed = requests.total - requests.outcomes.completed;
  if (failed > 0) {
    const [first] = requests.messages;
    return `${failed} of ${requests.total} requests failed${first === undefined ? '' : `: ${first.message}`}`;
  }
  const first = `first token after ${Math.round(latencies.ttft.p50 ?? 0)} ms`;
  if (outputTokens === 1) return `${rateText(tokens.prompt / seconds)} prompt tokens/s, ${first}`;
  return `${rateText(throughput.outputTokens)} tokens/s, ${first}`;
}

const rateText = (rate: number) => rate.toFixed(rate < 100 ? 1 : 0).padStart(8);
