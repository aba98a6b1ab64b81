import { SkeinError } from '../../base/skein-error.js';
import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { KvDtype } from '../../kvcache/kv-dtype.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { EngineTensor } from '../building/engine-directory.js';
import type { FixedMemory } from '../worker/memory-budget.js';
import type { Executor, ExecutorOptions, WeightPrecision } from './executor.js';

/** What of an engine an executor needs. */
export interface LoadableEngine {
  plan: NetworkPlan;
  weightsFile: string;
  tensors: EngineTensor[];
  /** Where an executor may keep weights in a layout of its own. May be read-only. */
  packedFolder: string;
}

/** What an executor takes, in bytes. */
export interface MeasuredMemory {
  /** Memory beside the KV pool. */
  fixed: FixedMemory;
  /** The KV pool of the measured options. */
  kvCache: number;
  /** The largest KV pool that such an executor can have, whatever memory there is, and what holds no more; absent: any. */
  mostKvCache?: { bytes: number; of: string };
}

/** An executor as the engine comes to it: looked at and measured first, then opened. */
export interface ExecutorKind {
  readonly name: ExecutorName;
  /** Whether `auto` takes it on this machine; absent: it does. Where it does not, that is no fallback to speak of. */
  isAutomatic?(): Promise<boolean>;
  /** Where `auto` does not take it: what this machine has that it could use, and how to let it, as one sentence; null: nothing. */
  hint?(): Promise<string | null>;
  /** Why it cannot run on this machine, as one sentence that says what to do; null: nothing is known against it. */
  problem(): Promise<string | null>;
  /** What it computes with here: its kernels, and how many threads where none are asked for. Throws where it cannot run. */
  computesWith(): Promise<{ instructionSet: string; threads: number }>;
  /**
   * What of the available memory its KV cache can have, in bytes: less its weights, and no more than it can address.
   * Absent: all that weights.bin leaves.
   */
  kvRoom?(plan: NetworkPlan, availableBytes: number): Promise<number>;
  /** What is free where it keeps weights and cache; absent, or null: the system's memory counts. */
  deviceMemory?(): Promise<AvailableMemory | null>;
  /** Threads that it computes with where so many are asked for; undefined: as it likes. */
  threadsFor(asked: number | undefined): number;
  /** Numeric type of the KV cache where none is asked for. */
  kvDtypeFor(weights: WeightPrecision): KvDtype;
  /** What such an executor takes, without taking any of it. Throws where it cannot run. */
  measure(engine: LoadableEngine, options: ExecutorOptions): Promise<MeasuredMemory>;
  /** Loads the weights and takes all memory. Throws one sentence where it cannot. */
  open(engine: LoadableEngine, options: ExecutorOptions): Promise<Executor>;
  /** The same where `auto` has come to it; absent: there is no difference. */
  openAutomatically?(engine: LoadableEngine, options: ExecutorOptions): Promise<Executor>;
}

/** This executor cannot run on this machine, whatever the engine and the options. The message says what to do. */
export class ExecutorUnavailableError extends SkeinError {
  override name = 'ExecutorUnavailableError';
  override readonly code = 'SKEIN_EXECUTOR_UNAVAILABLE';
}
