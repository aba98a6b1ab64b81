import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { BEST_INSTRUCTION_SET, INSTRUCTION_SETS } from '../../tools/support/test-engine.js';
import { isShort } from './scale.js';

export {
  BEST_INSTRUCTION_SET as bestInstructionSet,
  multipliesPairs,
} from '../../tools/support/test-engine.js';

/** Sets that differ from a neighbour in the products of some formats alone: the tests of kernels compare those, each with its scalar twin. */
const OTHER_PRODUCTS: readonly InstructionSet[] = ['avxvnni', 'avx512bf16'];

/**
 * The sets of this processor that run whole networks in tests: the one that a user gets, and one of each width. A short run takes the
 * vector code alone: plain C++ is one more instance of the same templates, a hundred times as slow under a sanitizer, and its loads and
 * stores are tried in the tests of kernels.
 */
export const instructionSets = INSTRUCTION_SETS.filter(
  (set) => set === BEST_INSTRUCTION_SET || !(OTHER_PRODUCTS.includes(set) || (isShort && set === 'scalar')),
);

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
