import type { ExecutorOptions } from '../../engine/executors/executor.js';

export {
  BEST_INSTRUCTION_SET as bestInstructionSet,
  INSTRUCTION_SETS as instructionSets,
  multipliesPairs,
} from '../../tools/support/test-engine.js';

export function executorOptions(changes: Partial<ExecutorOptions> = {}): ExecutorOptions {
  return {
    threads: 2,
    maxNumTokens: 256,
    maxNumSequences: 16,
    maxLogitRows: 256,
    maxSeqLen: 2048,
    numBlocks: 64,
    tokensPerBlock: 16,
    kvDtype: 'f32',
    ...changes,
  };
}
