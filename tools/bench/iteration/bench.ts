import type { PackedBatch } from '../../../engine/batch/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../../engine/decoding/sampling-batch.js';
import type { WeightPrecision } from '../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { countOf } from '../../compare/flags.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { median } from '../../support/statistics.js';
import { makeStepBatch, type StepSequence } from '../../support/step-batch.js';
import { defineBench } from '../bench.js';
import { positiveOf, secondsFlag } from '../flags.js';
import { makeRandomEngine, type RandomEngine } from './random-engine.js';

const FLAGS = {
  weights: { argument: 'TYPE', default: 'f32', help: 'f32, bf16, int8 or int4 (default f32)' },
  threads: { argument: 'N', default: '2', help: 'threads of the executor (default 2)' },
  ...secondsFlag(2),
} as const;

const TOKENS_PER_BLOCK = 32;
const CONTEXT = 128;
const MAX_NUM_TOKENS = 512;

interface Work {
  name: string;
  /** Steps that are measured together. */
  steps: { batch: PackedBatch; sampling: SamplingBatch; output: SamplingOutput }[];
  tokens: number;
}

function step(
  { inverseFrequencies }: RandomEngine,
  sequences: StepSequence[],
  temperature: number,
): Work['steps'][number] {
  const batch = makeStepBatch(sequences, { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies });
  const rows = Array.from({ length: batch.numLogitRows }, (_, i) => ({
    temperature,
    topP: 0.95,
    seed: BigInt(i),
  }));
  return { batch, sampling: makeSamplingBatch(rows), output: makeSamplingOutput(rows.length) };
}

function tokensUpTo(length: number): number[] {
  return Array.from({ length }, (_, i) => (i * 7919) % 49152);
}

function blocksOf(sequence: number, length: number): number[] {
  const count = Math.ceil(length / TOKENS_PER_BLOCK);
  return Array.from({ length: count }, (_, i) => sequence * count + i);
}

function generation(engine: RandomEngine, count: number, temperature = 0): Work {
  const sequences = Array.from({ length: count }, (_, s) => ({
    tokens: tokensUpTo(CONTEXT + 1),
    cached: CONTEXT,
    blocks: blocksOf(s, CONTEXT + 1),
  }));
  const name = `generation, ${count} sequences${temperature > 0 ? ', top-p 0.95' : ''}`;
  return { name, steps: [step(engine, sequences, temperature)], tokens: count };
}

function prefill(engine: RandomEngine, length: number): Work {
  const steps = [];
  for (let cached = 0; cached < length; cached += MAX_NUM_TOKENS) {
    const tokens = tokensUpTo(Math.min(length, cached + MAX_NUM_TOKENS));
    const logits = tokens.length === length ? 'last' : 'none';
    steps.push(step(engine, [{ tokens, cached, blocks: blocksOf(0, length), logits }], 0));
  }
  return { name: `context of ${length}`, steps, tokens: length };
}

/** Two lines: the median time of the work, and the mean time of each kind of operation in it. */
function measure(executor: NativeExecutor, { name, steps, tokens }: Work, seconds: number): string[] {
  const runOnce = () => {
    for (const { batch, sampling, output } of steps) executor.step(batch, sampling, output);
  };
  runOnce();
  executor.profile(true);
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  do {
    const begin = performance.now();
    runOnce();
    times.push(performance.now() - begin);
  } while (performance.now() < end || times.length < 3);
  const shares = Object.entries(executor.profile(false)).sort((a, b) => b[1] - a[1]);
  const middle = median(times);
  const parts = shares
    .map(([kind, spent]) => `${kind} ${((spent * 1000) / times.length).toFixed(2)}`)
    .join(', ');
  return [
    `${name}: ${((tokens * 1000) / middle).toFixed(0)} tokens/s, ${middle.toFixed(2)} ms (fastest ${Math.min(...times).toFixed(2)})`,
    `  ms on average: ${parts}`,
  ];
}

/**
 * Time of an iteration, by kind of operation. Random weights of SmolLM2-135M's shape; generation at 1, 8, 32 and 64 sequences
 * with 128 tokens in the cache, and prompts of 128 tokens and of 1024 in two chunks of 512. The executor runs alone: no
 * checkpoint, no loop, no server.
 */
export const bench = defineBench({
  flags: FLAGS,
  document: null,
  sections: [],
  run(flags, { progress, report }) {
    const precision = flags.weights as WeightPrecision;
    const threads = countOf('threads', flags.threads);
    const seconds = positiveOf('seconds', flags.seconds);
    const engine = makeRandomEngine(precision);
    const executor = new NativeExecutor(engine, {
      threads,
      maxNumTokens: MAX_NUM_TOKENS,
      maxNumSequences: 64,
      maxLogitRows: 64,
      maxSeqLen: 2048,
      numBlocks: 64 * 8,
      tokensPerBlock: TOKENS_PER_BLOCK,
      kvDtype: precision === 'f32' ? 'f32' : 'bf16',
    });
    try {
      const works = [
        ...[1, 8, 32, 64].map((count) => generation(engine, count)),
        generation(engine, 64, 0.8),
        ...[128, 1024].map((length) => prefill(engine, length)),
      ];
      const lines = works.flatMap((work) => {
        const found = measure(executor, work, seconds);
        progress(found[0]!);
        return found;
      });
      const { weightBytes, kvCacheBytes, workspaceBytes } = executor.memory();
      const bytes = [weightBytes, kvCacheBytes, workspaceBytes].map((count) => (count / 2 ** 20).toFixed(0));
      const conditions = `${precision} weights, kernels of ${executor.instructionSet}, ${threads} threads; MiB of weights, cache, workspace: ${bytes.join(', ')}`;
      report({ section: 'iteration', conditions, lines });
    } finally {
      executor.close();
      engine.remove();
    }
  },
});
