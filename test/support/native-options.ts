import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { chooseInstructionSet } from '../../engine/executors/native/instruction-set.js';
import { loadAddon } from '../../engine/executors/native/load-addon.js';

/** Every instruction set that this machine runs, slowest first. */
export const instructionSets: readonly InstructionSet[] = loadAddon().supportedInstructionSets();

/** The one that runs where none is named. */
export const bestInstructionSet: InstructionSet = chooseInstructionSet(instructionSets, undefined, undefined);

/** True if products with bf16 weights, and attention over a bf16 cache, round their rows to bf16. */
export const multipliesPairs = (set: InstructionSet): boolean =>
  ['avx512bf16', 'amx', 'neonbf16'].includes(set);

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
