import type { Engine } from '../../../engine/building/engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../support/sampling-rows.js';
import { makeStepBatch } from '../../support/step-batch.js';
import { engineOptions, nativeEngine } from '../../support/test-engine.js';

const TOKENS_PER_BLOCK = 32;
const MAX_TOKENS = 512;

/** A step of some sequences, each of which computes `tokens` after `cached` ones. */
export interface StepShape {
  name: string;
  sequences: number;
  tokens: number;
  cached: number;
}

/** The middle of 32 tokens after prompts of 128. */
export const GENERATION: StepShape = {
  name: 'generation, 32 sequences',
  sequences: 32,
  tokens: 1,
  cached: 144,
};
export const PROMPTS: StepShape = { name: '8 prompts of 64 tokens', sequences: 8, tokens: 64, cached: 0 };
export const PROMPT: StepShape = { name: 'a prompt of 512 tokens', sequences: 1, tokens: 512, cached: 0 };

export function openCrowd(engine: Engine, threads: number, maxAdapters: number, rank: number) {
  const maxSeqLen = 1024;
  const numBlocks = 256;
  const counts = { maxNumSequences: GENERATION.sequences, maxLogitRows: GENERATION.sequences };
  const options = { threads, maxSeqLen, tokensPerBlock: TOKENS_PER_BLOCK, maxNumTokens: MAX_TOKENS };
  const slots = maxAdapters > 0 ? { maxAdapters, maxLoraRank: rank } : {};
  return new NativeExecutor(
    nativeEngine(engine),
    engineOptions(engine, { ...options, ...counts, numBlocks, ...slots }),
  );
}

/**
 * One step, ready to be run again and again.
 *
 * @param slotOf slot of a sequence's adapter; undefined: it has none
 */
export function crowdStep(
  executor: NativeExecutor,
  engine: Engine,
  { sequences, tokens, cached }: StepShape,
  slotOf: (sequence: number) => number | undefined,
): () => void {
  const { config } = engine.manifest;
  const blocksEach = Math.ceil((cached + tokens) / TOKENS_PER_BLOCK);
  const parts = Array.from({ length: sequences }, (_, s) => {
    const adapter = slotOf(s);
    return {
      tokens: Array.from({ length: cached + tokens }, (_, i) => (i * 7919 + s * 31) % config.vocabSize),
      cached,
      blocks: Array.from({ length: blocksEach }, (_, i) => s * blocksEach + i),
      ...(adapter === undefined ? {} : { adapter }),
    };
  });
  const { inverseFrequencies } = ropeFrequencies(config.rope);
  const batch = makeStepBatch(parts, { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies });
  const sampling = makeSamplingBatch(parts.map(() => ({})));
  const output = makeSamplingOutput(sequences);
  return () => executor.step(batch, sampling, output);
}
