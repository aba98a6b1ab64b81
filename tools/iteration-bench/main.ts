// How long an iteration takes, and on what: `npx tsx tools/iteration-bench/main.ts [f32|bf16|int8|int4] [threads] [seconds]`.
// Random weights of SmolLM2-135M's shape; generation at 1, 8, 32 and 64 sequences with 128 tokens in the cache, and prompts of
// 128 tokens and of 1024 in two chunks of 512. No checkpoint, no loop, no server: the executor alone.

import type { PackedBatch } from '../../engine/batch/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../engine/decoding/sampling-batch.js';
import type { WeightPrecision } from '../../engine/executors/executor.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { makeSamplingBatch, makeSamplingOutput } from '../support/sampling-rows.js';
import { median } from '../support/statistics.js';
import { makeStepBatch, type StepSequence } from '../support/step-batch.js';
import { makeRandomEngine } from './random-engine.js';

const precision = (process.argv[2] ?? 'f32') as WeightPrecision;
const threads = Number(process.argv[3] ?? 2);
const seconds = Number(process.argv[4] ?? 2);
const TOKENS_PER_BLOCK = 32;
const CONTEXT = 128;
const MAX_NUM_TOKENS = 512;

interface Work {
  name: string;
  /** Steps that are measured together. */
  steps: { batch: PackedBatch; sampling: SamplingBatch; output: SamplingOutput }[];
  tokens: number;
}

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

function step(sequences: StepSequence[], temperature: number): Work['steps'][number] {
  const { inverseFrequencies } = engine;
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

function generation(count: number, temperature = 0): Work {
  const sequences = Array.from({ length: count }, (_, s) => ({
    tokens: tokensUpTo(CONTEXT + 1),
    cached: CONTEXT,
    blocks: blocksOf(s, CONTEXT + 1),
  }));
  const name = `generation, ${count} sequences${temperature > 0 ? ', top-p 0.95' : ''}`;
  return { name, steps: [step(sequences, temperature)], tokens: count };
}

function prefill(length: number): Work {
  const steps = [];
  for (let cached = 0; cached < length; cached += MAX_NUM_TOKENS) {
    const tokens = tokensUpTo(Math.min(length, cached + MAX_NUM_TOKENS));
    const logits = tokens.length === length ? 'last' : 'none';
    steps.push(step([{ tokens, cached, blocks: blocksOf(0, length), logits }], 0));
  }
  return { name: `context of ${length}`, steps, tokens: length };
}

function measure({ name, steps, tokens }: Work): void {
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
  console.log(
    `${name}: ${((tokens * 1000) / middle).toFixed(0)} tokens/s, ${middle.toFixed(2)} ms (fastest ${Math.min(...times).toFixed(2)})`,
  );
  console.log(`  ms on average: ${parts}`);
}

try {
  const { weightBytes, kvCacheBytes, workspaceBytes } = executor.memory();
  const megabytes = [weightBytes, kvCacheBytes, workspaceBytes].map((bytes) => (bytes / 2 ** 20).toFixed(0));
  console.log(
    `${precision}, ${executor.instructionSet}, ${threads} threads; MiB of weights, cache, workspace: ${megabytes.join(', ')}`,
  );
  for (const count of [1, 8, 32, 64]) measure(generation(count));
  measure(generation(64, 0.8));
  for (const length of [128, 1024]) measure(prefill(length));
} finally {
  executor.close();
  engine.remove();
}
