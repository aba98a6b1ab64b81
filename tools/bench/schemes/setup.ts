import type { ModelType } from '../../../callbacks/gpt-manager-options.js';
import { RopeTable } from '../../../engine/batch/rope-table.js';
import type { WeightPrecision } from '../../../engine/directory/engine-directory.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import { paddingRoom } from '../../../engine/schemes/padding-room.js';
import { makeRandomEngine } from '../iteration/random-engine.js';
import type { SchemeSetup } from './run-scheme.js';

const TOKENS_PER_BLOCK = 32;
/** Tokens of an iteration of the in-flight schemes; the server's default. */
const IN_FLIGHT_TOKENS = 2048;

export interface SetupOptions {
  precision: WeightPrecision;
  maxNumSequences: number;
  maxSeqLen: number;
  longestPrompt: number;
  threads: number;
}

/** An executor for all schemes, with room for the padding of V1, and the options that are the same in all runs. */
export function openSetup({ precision, maxNumSequences, maxSeqLen, longestPrompt, threads }: SetupOptions) {
  const engine = makeRandomEngine(precision);
  // V1 may start a batch as large as maxNumSequences; the other schemes chunk their contexts.
  const v1Tokens = Math.max(IN_FLIGHT_TOKENS, maxNumSequences * longestPrompt);
  const tokensPerBlock = TOKENS_PER_BLOCK;
  const padding = paddingRoom('V1', {
    maxSequences: maxNumSequences,
    maxNumTokens: v1Tokens,
    tokensPerBlock,
  });
  const numBlocks = maxNumSequences * Math.ceil(maxSeqLen / tokensPerBlock);
  const executor = new NativeExecutor(engine, {
    threads,
    maxNumTokens: v1Tokens,
    maxNumSequences: maxNumSequences + padding.sequences,
    maxLogitRows: maxNumSequences,
    maxSeqLen,
    numBlocks: numBlocks + padding.blocks,
    tokensPerBlock,
    kvDtype: precision === 'f32' ? 'f32' : 'bf16',
  });
  const { inverseFrequencies } = engine;
  const rope = new RopeTable({ inverseFrequencies, scale: 1 }, null, maxNumSequences);
  const setupOf = (modelType: ModelType): SchemeSetup => ({
    modelType,
    executor,
    rope,
    numBlocks,
    maxNumSequences,
    maxNumTokens: modelType === 'V1' ? v1Tokens : IN_FLIGHT_TOKENS,
    maxSeqLen,
  });
  const close = () => {
    executor.close();
    engine.remove();
  };
  return { setupOf, executor, close };
}
