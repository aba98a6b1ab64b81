import { SkeinError } from '../../base/skein-error.js';
import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { EnginePrecision } from '../directory/engine-directory.js';
import type { LoadableTensor } from '../directory/source-tensors.js';
import type { Executor, ExecutorOptions } from './executor.js';
import type { ExpertBytes, FixedMemory } from './memory-budget.js';

/** Parts of an engine that an executor needs. */
export interface LoadableEngine {
  plan: NetworkPlan;
  weightsFile: string;
  tensors: LoadableTensor[];
  /** Folder where an executor may keep weights in a layout of its own. May be read-only. */
  packedFolder: string;
  /**
   * Of an engine whose matrices are computed with where the model's file has them: the other tensors, in the place of weights.bin. Only
   * the native executor has such products. Absent: matrices are packed.
   */
  held?: Uint8Array;
}

/** Memory that an executor takes, in bytes. */
export interface MeasuredMemory {
  /** Memory besides the KV pool. */
  fixed: FixedMemory;
  /** The part of its packed weights that is experts, which this executor can also read from the disk; absent: it has none, or cannot. */
  experts?: ExpertBytes;
  /** Size of the KV pool, states included, with the measured options. */
  kvCache: number;
  /**
   * Size of the largest KV pool, states included, that such an executor can have however much memory there is, and the name of what sets
   * this limit; absent: no limit.
   */
  mostKvCache?: { bytes: number; of: string };
}

/** An executor before it is opened: the engine inspects and measures it first. */
export interface ExecutorKind {
  readonly name: ExecutorName;
  /**
   * True if `auto` may choose it on this machine; absent: true. If false, the choice of another is not reported as a
   * fallback.
   */
  isAutomatic?(): Promise<boolean>;
  /**
   * For a machine where `auto` does not choose it: a sentence naming the hardware it could use and how to enable it; null: none.
   */
  hint?(): Promise<string | null>;
  /** Reason why it cannot run on this machine, as one sentence that says what to do; null: no reason is known. */
  problem(): Promise<string | null>;
  /** Reason why it cannot compute a network, as one sentence that names what it lacks; null: it can. */
  supports(plan: NetworkPlan): string | null;
  /** Kernels that it computes with here, and the number of threads by default. @throws if it cannot run */
  computesWith(): Promise<{ instructionSet: string; threads: number }>;
  /**
   * Bytes of the available memory that its KV cache can have: without its weights, and no more than it can address.
   * Absent: all that weights.bin leaves.
   */
  kvRoom?(plan: NetworkPlan, availableBytes: number): Promise<number>;
  /** Free memory of the device that holds weights and cache; absent, or null: the system's memory counts. */
  deviceMemory?(): Promise<AvailableMemory | null>;
  /** Number of threads that it computes with if `asked` are wanted; undefined: its own choice. */
  threadsFor(asked: number | undefined): number;
  /** True if sequences of a model whose layers keep states may have drafts: see PackedBatch.stateDrafts. Absent: they have none. */
  readonly logsDrafts?: boolean;
  /** Ranks of LoRA adapters are rounded up to a multiple of this where they are computed; absent: to none. */
  readonly rankUnit?: number;
  /** Default numeric type of the KV cache. */
  kvDtypeFor(weights: EnginePrecision): KvDtype;
  /** Memory that such an executor takes, without taking any of it. @throws if it cannot run */
  measure(engine: LoadableEngine, options: ExecutorOptions): Promise<MeasuredMemory>;
  /** Loads the weights and takes all memory. Throws an error of one sentence if it cannot. */
  open(engine: LoadableEngine, options: ExecutorOptions): Promise<Executor>;
  /** Like `open`, but after `auto` has chosen it; absent: there is no difference. */
  openAutomatically?(engine: LoadableEngine, options: ExecutorOptions): Promise<Executor>;
}

/** The executor cannot run on this machine, whatever the engine and the options. The message says what to do. */
export class ExecutorUnavailableError extends SkeinError {
  override name = 'ExecutorUnavailableError';
  override readonly code = 'SKEIN_EXECUTOR_UNAVAILABLE';
}
