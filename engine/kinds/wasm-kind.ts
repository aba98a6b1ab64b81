import { rowsOfOthers, unequalWidths } from '../executors/cache-layers.js';
import type { ExecutorKind } from '../executors/executor-kind.js';

const THREADS = 1;

/**
 * The executor of @tensorflow/tfjs-backend-wasm, which runs wherever Node.js does. None of it is imported before it is
 *   used.
 */
export const wasmKind: ExecutorKind = {
  name: 'wasm',
  problem: async () => (await import('../executors/wasm/open-wasm-runner.js')).wasmProblem(),
  supports: (plan) => rowsOfOthers(plan, 'wasm') ?? unequalWidths(plan, 'wasm'),
  computesWith: async () => ({ instructionSet: 'SIMD', threads: THREADS }),
  kvRoom: async ({ weights }, availableBytes) => {
    const { MAX_HEAP_BYTES } = await import('../executors/wasm/heap.js');
    const weightBytes = weights.reduce((sum, { rows, columns }) => sum + 4 * rows * columns, 0);
    return Math.max(0, Math.min(availableBytes, MAX_HEAP_BYTES) - weightBytes);
  },
  threadsFor: () => THREADS,
  logsDrafts: true,
  kvDtypeFor: () => 'f32',
  measure: async ({ plan }, options) => {
    const { heapBytes, memoryLayout } = await import('../executors/wasm/memory-layout.js');
    const { MAX_HEAP_BYTES } = await import('../executors/wasm/heap.js');
    const layout = memoryLayout(plan, options);
    const { packedWeights, tables, workspace, kvCache, states } = layout;
    return {
      // weights.bin is read once; only the copy stays in memory.
      fixed: { packedWeights: packedWeights + tables, storedWeights: 0, workspace },
      kvCache: kvCache + states,
      mostKvCache: {
        bytes: Math.max(0, MAX_HEAP_BYTES - heapBytes({ ...layout, kvCache: 0, states: 0, staging: 0 })),
        of: 'a heap of WebAssembly',
      },
    };
  },
  open: async (engine, options) => {
    const [{ PortableExecutor }, { openWasmRunner }] = await Promise.all([
      import('../executors/portable/portable-executor.js'),
      import('../executors/wasm/open-wasm-runner.js'),
    ]);
    return PortableExecutor.open(engine, options, openWasmRunner);
  },
};
