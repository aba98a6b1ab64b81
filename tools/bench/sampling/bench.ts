import { DEFAULT_SAMPLING_PARAMS, type SamplingParams } from '../../../callbacks/sampling-params.js';
import { CHAIN, chainValuesOf } from '../../../engine/decoding/sampler-chain.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { countOf } from '../../compare/flags.js';
import { markdownTable } from '../../support/markdown-table.js';
import { makeSamplingBatch, makeSamplingOutput, type SamplingRow } from '../../support/sampling-rows.js';
import { median } from '../../support/statistics.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { defineBench } from '../bench.js';
import { roundsFlag, THREADS_FLAG } from '../flags.js';
import { makeRandomEngine } from '../iteration/random-engine.js';
import { DISTRIBUTIONS, type Distribution } from './distributions.js';

const FLAGS = {
  weights: { argument: 'NAMES', default: 'bf16,int4', help: 'precisions of the weights (default bf16,int4)' },
  ...THREADS_FLAG,
  ...roundsFlag(15),
} as const;

const SEQUENCES = 64;
const CONTEXT = 128;
const TOKENS_PER_BLOCK = 32;
const VOCAB = 49152;
const FEW_BLOCKS = Int32Array.of(0);

const chain = (params: Partial<SamplingParams>) => chainValuesOf({ ...DEFAULT_SAMPLING_PARAMS, ...params })!;

const CASES: readonly { name: string; row: SamplingRow }[] = [
  { name: 'greedy', row: {} },
  { name: 'temperature 1', row: { temperature: 1 } },
  { name: 'temperature 0.7', row: { temperature: 0.7 } },
  { name: 'top-p 0.9', row: { temperature: 1, topP: 0.9 } },
  { name: 'top-p 0.5', row: { temperature: 1, topP: 0.5 } },
  { name: 'top-k 50', row: { temperature: 1, topK: 50 } },
  { name: 'top-k 1000', row: { temperature: 1, topK: 1000 } },
  { name: 'top-k 50, top-p 0.9', row: { temperature: 1, topK: 50, topP: 0.9 } },
  { name: 'min-p 0.05', row: { temperature: 1, minP: 0.05 } },
  { name: 'temperature 1, log-probs', row: { temperature: 1, numTopLogProbs: 0 } },
  { name: 'temperature 1, 20 top log-probs', row: { temperature: 1, numTopLogProbs: 20 } },
  { name: 'typical-p 0.9', row: { temperature: 1, chain: chain({ typicalP: 0.9 }) } },
  { name: 'top-n-sigma 1', row: { temperature: 1, chain: chain({ topNSigma: 1 }) } },
  { name: 'top-k 50, XTC', row: { temperature: 1, topK: 50, chain: chain({ xtcProbability: 0.5 }) } },
  { name: 'mirostat 2', row: { temperature: 1, chain: mirostat() } },
];

function mirostat(): Float64Array {
  const values = chain({ mirostat: 2 });
  values[CHAIN.mirostatMu] = 10;
  return values;
}

const sequences = Array.from({ length: SEQUENCES }, (_, s) => ({
  tokens: Array.from({ length: CONTEXT + 1 }, (_, i) => (i * 7919 + s) % VOCAB),
  cached: CONTEXT,
  blocks: Array.from({ length: 5 }, (_, i) => s * 5 + i),
}));

/** Milliseconds of one call. */
function timed(run: () => void): number {
  const begin = performance.now();
  run();
  return performance.now() - begin;
}

/** Medians over the rounds: the forward, and for each case the sampling that follows it. */
function measure(executor: NativeExecutor, frequencies: Float32Array, logits: Float32Array, rounds: number) {
  const batch = makeStepBatch(sequences, {
    tokensPerBlock: TOKENS_PER_BLOCK,
    inverseFrequencies: frequencies,
  });
  const output = makeSamplingOutput(SEQUENCES, SEQUENCES * 20);
  const forward: number[] = [];
  const sampling = CASES.map((): number[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [i, { row }] of CASES.entries()) {
      const rows = sequences.map((_, s) => ({ ...row, seed: BigInt(s), position: round + 1 }));
      const params = makeSamplingBatch(rows);
      let view = logits;
      const forwardMs = timed(() => {
        view = executor.forward(batch);
      });
      view.set(logits);
      executor.areFinite(FEW_BLOCKS); // what it finds is of no interest: the helpers are awake after it, as after a forward
      const samplingMs = timed(() => executor.sample(params, output));
      if (round < 0) continue;
      forward.push(forwardMs);
      sampling[i]!.push(samplingMs);
    }
  }
  return { forwardMs: median(forward), samplingMs: sampling.map(median) };
}

function table(measured: readonly { forwardMs: number; samplingMs: number[] }[]): string {
  const rows = CASES.map(({ name }, i) => [
    name,
    ...measured.map(({ forwardMs, samplingMs }) => {
      const ms = samplingMs[i]!;
      return `${((100 * ms) / (forwardMs + ms)).toFixed(1)} % (${ms.toFixed(2)} ms)`;
    }),
  ]);
  return markdownTable(['', ...DISTRIBUTIONS.map(({ name }) => name)], rows);
}

/** The part of the report for weights of one precision. */
function reportOf(weights: WeightPrecision, threads: number, rounds: number): string {
  const engine = makeRandomEngine(weights);
  const executor = new NativeExecutor(engine, {
    threads,
    ...{ maxNumTokens: SEQUENCES, maxNumSequences: SEQUENCES, maxLogitRows: SEQUENCES, maxSeqLen: 2048 },
    ...{ numBlocks: SEQUENCES * 5, tokensPerBlock: TOKENS_PER_BLOCK, kvDtype: 'bf16' },
  });
  try {
    const measured = DISTRIBUTIONS.map(({ logits }: Distribution) =>
      measure(executor, engine.inverseFrequencies, logits(SEQUENCES, VOCAB), rounds),
    );
    const forwardMs = median(measured.map((m) => m.forwardMs)).toFixed(1);
    return [
      `${weights} weights, ${executor.instructionSet}, ${threads} threads: an iteration of ${SEQUENCES} sequences without sampling takes ${forwardMs} ms.`,
      '',
      table(measured),
    ].join('\n');
  } finally {
    executor.close();
    engine.remove();
  }
}

/**
 * Cost of choosing tokens relative to an iteration of 64 sequences. Random weights of SmolLM2-135M's shape
 * make the iteration; before each sampling its logits are written over with a distribution of our own, which
 * leaves the caches about as the output layer leaves them.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: 'docs/lab/sampling.md',
  sections: ['sampling'],
  run(flags, { report }) {
    const threads = countOf('threads', flags.threads);
    const rounds = countOf('rounds', flags.rounds);
    const parts = flags.weights
      .split(',')
      .map((weights) => reportOf(weights as WeightPrecision, threads, rounds));
    report({ section: 'sampling', conditions: '', lines: [parts.join('\n\n')] });
  },
});
