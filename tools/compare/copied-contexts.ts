import { loadableEngine, openEngine } from '../../engine/building/engine.js';
import type { Executor } from '../../engine/executors/executor.js';
import { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../engine/packed-call/sampling-batch.js';
import { ropeFrequencies } from '../../network/rope.js';
import { makeSamplingBatch, makeSamplingOutput } from '../support/sampling-rows.js';
import { makeStepBatch, type StepSequence } from '../support/step-batch.js';
import type { Rates } from './peer.js';
import type { Shape } from './shapes.js';
import type { Computing } from './skein.js';

/** Tokens of an iteration; the manager's default. */
const MAX_NUM_TOKENS = 2048;
const TOKENS_PER_BLOCK = 32;

/**
 * Generation of many sequences with long contexts, as llama-batched-bench's -pps does it with a buffer for each sequence:
 * one prompt is computed, its blocks are copied, and from then on every sequence reads and fills blocks of its own.
 *
 *   sequence 0   [0][1][2] ...          computed
 *   sequence 1   [n][n+1][n+2] ...      copied from them, block by block; n blocks a sequence
 *
 * Where they share the prompt, as sequences of one prefix do in a server, its full blocks are those of sequence 0 for all of them.
 *
 * The executor alone: no loop, no responses. Greedy, the sampling included.
 */
export function measureCopiedContexts(engineDirectory: string, shape: Shape, computing: Computing): Rates {
  const engine = openEngine(engineDirectory);
  const { manifest } = engine;
  const { precision, config } = manifest;
  const length = shape.promptTokens + shape.generate;
  const executor = new NativeExecutor(loadableEngine(engine), {
    ...computing,
    maxNumTokens: Math.max(MAX_NUM_TOKENS, shape.sequences),
    maxNumSequences: shape.sequences,
    maxLogitRows: shape.sequences,
    maxSeqLen: length,
    numBlocks: shape.sequences * Math.ceil(length / TOKENS_PER_BLOCK),
    tokensPerBlock: TOKENS_PER_BLOCK,
    kvDtype: precision === 'f32' ? 'f32' : 'bf16',
  });
  try {
    const { prefillPerSecond, generationPerSecond } = runCopiedContexts(
      executor,
      ropeFrequencies(config.rope).inverseFrequencies,
      shape,
    );
    return { prefillPerSecond, generationPerSecond };
  } finally {
    executor.close();
  }
}

/**
 * The same with an executor that has room for it in its first blocks.
 *
 * @returns the rates, and what every sequence drew last
 */
export function runCopiedContexts(
  executor: Executor,
  inverseFrequencies: Float32Array,
  { sequences, promptTokens, generate, shared = false }: Shape,
): Rates & { tokens: Int32Array } {
  const { tokensPerBlock, maxNumTokens } = executor.options;
  const blocksEach = Math.ceil((promptTokens + generate) / tokensPerBlock);
  const filled = Math.ceil(promptTokens / tokensPerBlock);
  const tokens = Array.from(
    { length: promptTokens + generate },
    (_, i) => (i * 7919 + 100) % executor.vocabSize,
  );
  /** Blocks of the prompt that all sequences read. */
  const sharedBlocks = shared ? Math.floor(promptTokens / tokensPerBlock) : 0;
  /** Entries from..until of sequence `index`'s table. */
  const blocksOf = (index: number, from: number, until: number) =>
    Array.from(
      { length: until - from },
      (_, i) => (from + i < sharedBlocks ? 0 : index * blocksEach) + from + i,
    );
  const sequence = (index: number, cached: number, until: number): StepSequence => ({
    tokens: tokens.slice(0, until),
    cached,
    blocks: blocksOf(index, 0, blocksEach),
  });
  const prepare = (parts: StepSequence[], newBlocks: number[]): Step => {
    const batch = makeStepBatch(parts, { tokensPerBlock, inverseFrequencies, newBlocks });
    const rows = batch.numLogitRows;
    return { batch, sampling: makeSamplingBatch(Array(rows).fill({})), output: makeSamplingOutput(rows) };
  };

  const chunks = [];
  for (let cached = 0; cached < promptTokens; cached += maxNumTokens) {
    const until = Math.min(promptTokens, cached + maxNumTokens);
    chunks.push(prepare([sequence(0, cached, until)], cached === 0 ? blocksOf(0, 0, filled) : []));
  }
  const prefillSeconds = run(executor, chunks);

  const others = Array.from({ length: sequences - 1 }, (_, i) => i + 1);
  const source = others.flatMap(() => blocksOf(0, sharedBlocks, filled));
  const target = others.flatMap((index) => blocksOf(index, sharedBlocks, filled));
  executor.copyBlocks(Int32Array.from(source), Int32Array.from(target));

  // The cost of a step does not depend on its tokens: they are fixed, so that all steps can be laid out before.
  const all = [0, ...others];
  const unfilled = all.flatMap((index) => blocksOf(index, filled, blocksEach));
  const steps = Array.from({ length: generate }, (_, step) => {
    const cached = promptTokens + step;
    const parts = all.map((index) => sequence(index, cached, cached + 1));
    return prepare(parts, step === 0 ? unfilled : []);
  });
  const generationSeconds = run(executor, steps);
  return {
    prefillPerSecond: promptTokens / prefillSeconds,
    generationPerSecond: (sequences * generate) / generationSeconds,
    tokens: steps.at(-1)!.output.tokens,
  };
}

interface Step {
  batch: PackedBatch;
  sampling: SamplingBatch;
  output: SamplingOutput;
}

/** Seconds. */
function run(executor: Executor, steps: readonly Step[]): number {
  const start = performance.now();
  for (const { batch, sampling, output } of steps) executor.step(batch, sampling, output);
  return (performance.now() - start) / 1000;
}
