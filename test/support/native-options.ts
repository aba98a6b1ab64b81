import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { BEST_INSTRUCTION_SET, INSTRUCTION_SETS } from '../../tools/support/test-engine.js';

export {
  BEST_INSTRUCTION_SET as bestInstructionSet,
  multipliesPairs,
} from '../../tools/support/test-engine.js';

/**
 * Sets whose kernels the tests of kernels compare with others: those that differ from a neighbour in the products of some formats alone, and
 * plain C++, which is the twin of all others, one more instance of the same templates, and many times as slow. Small networks run on all sets
 * in test/bitwise/tiny.test.ts and test/reference/tiny.test.ts.
 */
const COMPARED: readonly InstructionSet[] = ['avxvnni', 'avx512bf16', 'scalar'];

/** The sets of this processor that run whole networks in tests: the one that a user gets, and one of each width. */
export const instructionSets = INSTRUCTION_SETS.filter(
  (set) => set === BEST_INSTRUCTION_SET || !COMPARED.includes(set),
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
