import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Engine, loadableEngine } from '../../../engine/building/engine.js';
import { cachedEngine } from '../../../engine/building/engine-cache.js';
import { openStoredEngine } from '../../../engine/building/stored-engine.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { ropeFrequencies } from '../../../network/rope.js';
import { LlamaCpp } from '../../compare/llama-cpp.js';
import { makeStepBatch } from '../../support/step-batch.js';

/** One start, and what followed it. */
export interface FormRun {
  /** From nothing but the file to the first token. */
  startSeconds: number;
  /** Tokens a second of all sequences together, in the order of SEQUENCES. */
  tokensPerSecond: number[];
  /** Bytes of weights that a step reads; null where the side does not report them. */
  weightBytes: number | null;
}

export const SEQUENCES = [1, 8] as const;
const CONTEXT = 64;
const TOKENS_PER_BLOCK = 32;
const BLOCKS_EACH = 4;
/** Steps that are timed; the first ones are not. */
const [STEPS, WARM_STEPS] = [8, 1];

/** Skein from an empty cache, or with --no-panels from the file alone. */
export async function runSkein(
  model: string,
  cache: string,
  panels: boolean,
  threads: number,
): Promise<FormRun> {
  rmSync(cache, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  const startMs = performance.now();
  const engine = panels
    ? await cachedEngine({ model, precision: 'auto', cacheDirectory: cache })
    : openStoredEngine(model);
  const most = Math.max(...SEQUENCES);
  const executor = new NativeExecutor(loadableEngine(engine), {
    threads,
    maxNumTokens: most,
    maxNumSequences: most,
    maxLogitRows: most,
    maxSeqLen: BLOCKS_EACH * TOKENS_PER_BLOCK,
    numBlocks: most * BLOCKS_EACH,
    tokensPerBlock: TOKENS_PER_BLOCK,
    kvDtype: 'bf16',
  });
  try {
    executor.forward(batchOf(engine, 1));
    const startSeconds = (performance.now() - startMs) / 1000;
    const tokensPerSecond = SEQUENCES.map((count) => {
      const batch = batchOf(engine, count);
      for (let i = 0; i < WARM_STEPS; i++) executor.forward(batch);
      const beginMs = performance.now();
      for (let i = 0; i < STEPS; i++) executor.forward(batch);
      return (1000 * STEPS * count) / (performance.now() - beginMs);
    });
    return { startSeconds, tokensPerSecond, weightBytes: executor.memory().weightBytes };
  } finally {
    executor.close();
    rmSync(cache, { recursive: true, force: true });
  }
}

function batchOf(engine: Engine, count: number) {
  const { inverseFrequencies } = ropeFrequencies(engine.manifest.config.rope);
  return makeStepBatch(
    Array.from({ length: count }, (_, s) => ({
      tokens: Array.from({ length: CONTEXT + 1 }, (_, i) => 2 + ((i * 7 + s) % 50)),
      cached: CONTEXT,
      blocks: Array.from(
        { length: Math.ceil((CONTEXT + 1) / TOKENS_PER_BLOCK) },
        (_, i) => s * BLOCKS_EACH + i,
      ),
    })),
    { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies },
  );
}

/** llama.cpp with the same file: a process that computes a prompt of 16 tokens and two more is its start. */
export function runLlama(peers: string, file: string, type: string, threads: number): FormRun {
  const llama = new LlamaCpp(peers);
  const startMs = performance.now();
  llama.measure(file, type, { sequences: 1, promptTokens: 16, generate: 2, runs: 1 }, threads);
  const startSeconds = (performance.now() - startMs) / 1000;
  const tokensPerSecond = SEQUENCES.map((sequences) => {
    const shape = { sequences, promptTokens: CONTEXT, generate: STEPS, runs: 1 };
    return llama.measure(file, type, shape, threads).generationPerSecond;
  });
  return { startSeconds, tokensPerSecond, weightBytes: null };
}

export const cacheIn = (folder: string): string => join(folder, 'cache');
