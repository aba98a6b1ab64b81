import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { LoadableTensor } from '../../directory/source-tensors.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../packed-call/sampling-batch.js';
import type { BlockAccess, ExecutorOptions } from '../executor.js';

/** Parts of an engine that such an executor needs. Unlike the native one it copies the weights, once. */
export interface RunnableEngine {
  plan: NetworkPlan;
  weightsFile: string;
  tensors: LoadableTensor[];
}

/** stateBytes: the states of sequences; absent: the runner keeps none. */
export type RunnerMemory = Omit<ExecutorMemory, 'secondaryKvCacheBytes'> & { stateBytes?: number };

/**
 * Runs the ops of a network with a tensor library. PortableExecutor adds the rest of an executor: checks of the batch,
 * returned logits, sampling on the host, the rules of begin and finish.
 *
 *   ops of the plan    embedding ... attention ... linear | selectRows norm linear (softCap)
 *                      `- forward: rows of T, writes K, V -'  `- head: rows of T that are named -'
 *
 * Batches have already been checked. A runner never draws, waits or calls back, except for `sample`.
 */
export interface NetworkRunner {
  readonly name: 'tensorflow' | 'wasm';
  /** The device or instructions that the runner computes with, for people: 'CPU', 'GPU NVIDIA H100', 'SIMD'. */
  readonly device: string;
  /** Absent: it cannot let tokens of a picture attend to those of it that follow them. */
  readonly attendsWithinPictures?: true;
  /**
   * Zeroes the batch's new blocks, writes K and V of its rows into their slots and computes all ops over rows of tokens.
   * Their results that `head` reads stay until the next call.
   */
  forward(batch: PackedBatch): void;
  /**
   * Computes the ops over rows of logits for these rows of T of the last forward, at most maxLogitRows of them; may be
   * called several times. A network that takes means of sequences (meanPool) calls it once, and the rows are the
   * sequences.
   */
  head(rows: Int32Array): void;
  /** Results of the last `head` [rows x outputWidth]: a view, valid and writable until the next call of any method. */
  logits(): Float32Array;
  /**
   * Samples all rows of the last `head` where their logits are. Returns false, and writes nothing, if a row needs the
   * host's sampler. Absent: all sampling is the host's.
   */
  sample?(sampling: SamplingBatch, output: SamplingOutput): boolean;
  /** Operations on blocks: see Executor. */
  copyBlocks(source: Int32Array, target: Int32Array): void;
  areFinite(blocks: Int32Array): boolean;
  /** Operations on slots for states: see Executor. Absent: the runner keeps none. */
  copyStates?(source: Int32Array, target: Int32Array): void;
  areStatesFinite?(slots: Int32Array): boolean;
  /** The content of blocks: see Executor. Its arguments have been checked. Absent: it cannot be had. */
  readonly blockAccess?: BlockAccess;
  /** Memory that the runner takes; kvCacheBytes counts all blocks, secondary ones too. */
  memory(): RunnerMemory;
  close(): void;
}

/** Takes all memory and loads the weights. Throws one sentence if it cannot. */
export type OpenRunner = (engine: RunnableEngine, options: ExecutorOptions) => Promise<NetworkRunner>;
