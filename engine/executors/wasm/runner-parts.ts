import type { NetworkPlan } from '../../../network/plan.js';
import type { ExecutorOptions } from '../executor.js';
import type { WasmHeap } from './heap.js';
import type { WasmWeights } from './load-weights.js';
import type { MemoryLayout } from './memory-layout.js';
import type { RelativeTables } from './relative-tables.js';
import type { Workspace } from './workspace.js';

/** Parts of a runner after all memory has been taken and the weights are loaded. */
export interface RunnerParts {
  plan: NetworkPlan;
  options: ExecutorOptions;
  heap: WasmHeap;
  weights: WasmWeights;
  workspace: Workspace;
  layout: MemoryLayout;
  relative: RelativeTables;
}
