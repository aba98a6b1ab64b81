import type { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { PackedBatch } from '../../../engine/packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../../engine/packed-call/sampling-batch.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { makeStepBatch, type StepSequence } from '../../support/step-batch.js';

export const TOKENS_PER_BLOCK = 32;
const CONTEXT = 128;

/** What steps need of an engine. */
export interface WorkEngine {
  inverseFrequencies: Float32Array;
}

/** Steps of one kind of work. */
export interface Work {
  name: string;
  /** Steps that are measured together. */
  steps: { batch: PackedBatch; sampling: SamplingBatch; output: SamplingOutput }[];
  tokens: number;
}

function step(
  { inverseFrequencies }: WorkEngine,
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

/** One token for each of `count` sequences with 128 tokens in the cache. */
export function generation(engine: WorkEngine, count: number, temperature = 0): Work {
  const sequences = Array.from({ length: count }, (_, s) => ({
    tokens: tokensUpTo(CONTEXT + 1),
    cached: CONTEXT,
    blocks: blocksOf(s, CONTEXT + 1),
    stateSlot: s,
  }));
  const name = `generation, ${count} sequences${temperature > 0 ? ', top-p 0.95' : ''}`;
  return { name, steps: [step(engine, sequences, temperature)], tokens: count };
}

/** One prompt in chunks of at most `chunk` tokens. */
export function prefill(engine: WorkEngine, length: number, chunk: number): Work {
  const steps = [];
  for (let cached = 0; cached < length; cached += chunk) {
    const tokens = tokensUpTo(Math.min(length, cached + chunk));
    const logits = tokens.length === length ? 'last' : 'none';
    steps.push(step(engine, [{ tokens, cached, blocks: blocksOf(0, length), logits, stateSlot: 0 }], 0));
  }
  return { name: `context of ${length}`, steps, tokens: length };
}

/**
 * Milliseconds of the work, run for a number of seconds and at least three times, and of each kind of
 * operation in it on average.
 */
export function timesOf(
  executor: NativeExecutor,
  { steps }: Work,
  seconds: number,
): { times: number[]; parts: Readonly<Record<string, number>> } {
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
  const parts = Object.entries(executor.profile(false)).map(([kind, spent]) => [
    kind,
    (spent * 1000) / times.length,
  ]);
  return { times, parts: Object.fromEntries(parts) };
}
