import type { ModelType } from '../../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { countOf, listOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { percentile } from '../../support/statistics.js';
import { defineBench } from '../bench.js';
import { positiveOf, THREADS_FLAG } from '../flags.js';
import { runScheme, type SchemeResult } from './run-scheme.js';
import { openSetup } from './setup.js';
import { longestSequence, poissonArrivals, type WorkloadOptions } from './workload.js';

const FLAGS = {
  rates: { argument: 'LIST', default: '2,4,8', help: 'arrivals a second (default 2,4,8)' },
  requests: { argument: 'N', default: '48', help: 'requests of each run (default 48)' },
  prompt: { argument: 'A,B', default: '16,128', help: 'shortest and longest prompt (default 16,128)' },
  generate: {
    argument: 'N',
    default: '48',
    help: 'mean of the generated tokens, whose number is exponential (default 48)',
  },
  sequences: { argument: 'N', default: '32', help: 'most requests at once (default 32)' },
  weights: { argument: 'TYPE', default: 'bf16', help: 'f32, bf16, int8 or int4 (default bf16)' },
  ...THREADS_FLAG,
  seed: { argument: 'N', default: '1', help: 'seed of the requests and their arrivals (default 1)' },
} as const;

const SCHEMES: readonly ModelType[] = ['V1', 'InflightBatching', 'InflightFusedBatching'];
const VOCAB_SIZE = 49152;
const HEAD = [
  'requests/s',
  'scheme',
  'tokens/s',
  'first token (s)',
  'mean latency (s)',
  'p95 (s)',
  'empty slots',
];

function row(rate: number, scheme: string, result: SchemeResult): (string | number)[] {
  const seconds = (ms: number) => (ms / 1000).toFixed(2);
  return [
    rate,
    scheme,
    result.tokensPerSecond.toFixed(0),
    seconds(mean(result.firstTokensMs)),
    seconds(mean(result.latenciesMs)),
    seconds(percentile(result.latenciesMs, 0.95)),
    `${(100 * result.emptyShare).toFixed(0)} %`,
  ];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Gain by each batching scheme under Poisson arrivals: the same requests at the same times through V1, InflightBatching
 * and InflightFusedBatching. Random weights of SmolLM2-135M's shape, which cost what trained ones cost; the loop and the
 * native executor alone, without a checkpoint or a server.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'BENCHMARKS.md',
  sections: ['schemes'],
  run(flags, { progress, report }) {
    const [shortest = 16, longest = 128] = listOf(flags.prompt).map((text) => countOf('prompt', text));
    const workload: WorkloadOptions = {
      requests: countOf('requests', flags.requests),
      rate: 1000,
      promptTokens: [shortest, longest],
      newTokens: countOf('generate', flags.generate),
      vocabSize: VOCAB_SIZE,
      seed: countOf('seed', flags.seed, 0),
    };
    const sequences = countOf('sequences', flags.sequences);
    const threads = countOf('threads', flags.threads);
    const { setupOf, executor, close } = openSetup({
      precision: flags.weights as WeightPrecision,
      maxNumSequences: sequences,
      maxSeqLen: longestSequence(workload),
      longestPrompt: longest,
      threads,
    });
    const rows: (string | number)[][] = [];
    try {
      for (const scheme of SCHEMES) runScheme(setupOf(scheme), poissonArrivals({ ...workload, requests: 4 }));
      for (const rate of listOf(flags.rates).map((text) => positiveOf('rates', text))) {
        const arrivals = poissonArrivals({ ...workload, rate });
        for (const scheme of SCHEMES) rows.push(row(rate, scheme, runScheme(setupOf(scheme), arrivals)));
        progress(`${rate} requests/s done`);
      }
    } finally {
      close();
    }
    report({
      section: 'schemes',
      conditions:
        `kernels of ${executor.instructionSet}, ${threads} threads, ${flags.weights} weights of SmolLM2-135M's shape; ` +
        `${workload.requests} requests, prompts of ${shortest} to ${longest} tokens, ${workload.newTokens} generated on average, at most ${sequences} at once`,
      lines: [markdownTable(HEAD, rows, 2)],
    });
  },
});
