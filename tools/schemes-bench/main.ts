/**
 * What each batching scheme buys under Poisson arrivals: the same requests at the same times through V1,
 * InflightBatching and InflightFusedBatching, as a Markdown table. Random weights of SmolLM2-135M's shape, which cost what
 * trained ones cost; no checkpoint, no server, the loop and the native executor alone. See --help.
 *
 *     npx tsx tools/schemes-bench/main.ts            prints the table
 *     npx tsx tools/schemes-bench/main.ts --write    writes it into BENCHMARKS.md
 */
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../engine/executors/executor.js';
import { writeSection } from '../document-section.js';
import { runScheme, type SchemeResult } from './run-scheme.js';
import { openSetup } from './setup.js';
import { longestSequence, poissonArrivals, type WorkloadOptions } from './workload.js';

const HELP = `Measures the three batching schemes under Poisson arrivals and prints a Markdown table.

  --rates LIST        arrivals a second (default 2,4,8)
  --requests N        requests of each run (default 48)
  --prompt A,B        shortest and longest prompt (default 16,128)
  --generate N        mean of the generated tokens, which are exponential (default 48)
  --sequences N       most requests at once (default 32)
  --weights TYPE      f32, bf16, int8 or int4 (default bf16)
  --threads N         (default: all)
  --seed N            of the requests and their arrivals (default 1)
  --write             write the table into BENCHMARKS.md`;

const SCHEMES: readonly ModelType[] = ['V1', 'InflightBatching', 'InflightFusedBatching'];
const VOCAB_SIZE = 49152;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    write: { type: 'boolean' },
    rates: { type: 'string', default: '2,4,8' },
    requests: { type: 'string', default: '48' },
    prompt: { type: 'string', default: '16,128' },
    generate: { type: 'string', default: '48' },
    sequences: { type: 'string', default: '32' },
    weights: { type: 'string', default: 'bf16' },
    threads: { type: 'string', default: String(availableParallelism()) },
    seed: { type: 'string', default: '1' },
  },
});

const numbers = (list: string) => list.split(',').map(Number);

function row(rate: number, scheme: string, result: SchemeResult): string {
  const latencies = result.latenciesMs.toSorted((a, b) => a - b);
  const seconds = (ms: number) => (ms / 1000).toFixed(2);
  const cells = [
    rate,
    scheme,
    result.tokensPerSecond.toFixed(0),
    seconds(mean(result.firstTokensMs)),
    seconds(mean(latencies)),
    seconds(latencies[Math.ceil(0.95 * latencies.length) - 1]!),
    `${(100 * result.emptyShare).toFixed(0)} %`,
  ];
  return `| ${cells.join(' | ')} |`;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function main(): void {
  const [shortest = 16, longest = 128] = numbers(flags.prompt);
  const workload: WorkloadOptions = {
    requests: Number(flags.requests),
    rate: 1000,
    promptTokens: [shortest, longest],
    newTokens: Number(flags.generate),
    vocabSize: VOCAB_SIZE,
    seed: Number(flags.seed),
  };
  const precision = flags.weights as WeightPrecision;
  const sequences = Number(flags.sequences);
  const { setupOf, executor, close } = openSetup({
    precision,
    maxNumSequences: sequences,
    maxSeqLen: longestSequence(workload),
    longestPrompt: longest,
    threads: Number(flags.threads),
  });
  const lines = [
    `${cpus()[0]?.model.trim()}, ${executor.instructionSet}, ${flags.threads} threads, ${precision} weights of SmolLM2-135M's shape. ` +
      `${workload.requests} requests, prompts of ${shortest} to ${longest} tokens,`,
    `${workload.newTokens} generated on average, at most ${sequences} at once.`,
    '',
    '| requests/s | scheme | tokens/s | first token (s) | mean latency (s) | p95 (s) | empty slots |',
    '|---|---|---:|---:|---:|---:|---:|',
  ];
  try {
    for (const scheme of SCHEMES) runScheme(setupOf(scheme), poissonArrivals({ ...workload, requests: 4 }));
    for (const rate of numbers(flags.rates)) {
      const arrivals = poissonArrivals({ ...workload, rate });
      for (const scheme of SCHEMES) lines.push(row(rate, scheme, runScheme(setupOf(scheme), arrivals)));
    }
  } finally {
    close();
  }
  if (flags.write) writeSection('BENCHMARKS.md', 'schemes', lines.join('\n'));
  else console.log(lines.join('\n'));
}

if (flags.help) console.log(HELP);
else main();
