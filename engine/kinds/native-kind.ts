import { messageOf } from '../../base/error-text.js';
import { defaultThreads } from '../../base/topology.js';
import { wrongCaches } from '../executors/cache-layers.js';
import type { ExecutorKind } from '../executors/executor-kind.js';
import { storedWeightBytes } from '../executors/memory-budget.js';
import { chooseInstructionSet } from '../executors/native/instruction-set.js';
import { loadAddon } from '../executors/native/load-addon.js';
import { NativeExecutor } from '../executors/native/native-executor.js';
import { RankedExecutor } from '../ranks/ranked-executor.js';

/** The executor of the C++ addon, which runs on the CPU. */
export const nativeKind: ExecutorKind = {
  name: 'native',
  // Of float32, in the widest vector.
  rankUnit: 16,
  problem: async () => {
    try {
      loadAddon();
      return null;
    } catch (error) {
      return messageOf(error);
    }
  },
  logsDrafts: true,
  supports: (plan) => wrongCaches(plan, 'native'),
  computesWith: async () => ({
    instructionSet: chooseInstructionSet(
      loadAddon().supportedInstructionSets(),
      undefined,
      process.env.SKEIN_ISA,
    ),
    threads: defaultThreads(),
  }),
  threadsFor: (asked) => asked ?? defaultThreads(),
  kvDtypeFor: (weights) => (weights === 'f32' ? 'f32' : 'bf16'),
  measure: async (engine, options) => {
    const { memory, experts } = NativeExecutor.measureWithExperts(engine, options);
    const { weightBytes, workspaceBytes, kvCacheBytes } = memory;
    // What is computed with as it lies is counted as a whole: embeddings too.
    const storedWeights = engine.held?.length ?? storedWeightBytes(engine.plan, engine.tensors);
    const fixed = { packedWeights: weightBytes, storedWeights, workspace: workspaceBytes };
    return { fixed, kvCache: kvCacheBytes, ...(experts.bytes > 0 && { experts }) };
  },
  open: async (engine, options) => {
    const { seat } = options;
    if (seat?.group === undefined) return new NativeExecutor(engine, options);
    return new RankedExecutor(engine, { ...options, seat: { ...seat, group: seat.group } });
  },
};
