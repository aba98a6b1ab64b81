import type { ExecutorMemory } from '../../../callbacks/worker-messages.js';
import type { NetworkPlan } from '../../../network/plan.js';
import type { PackedBatch } from '../../batch/packed-batch.js';
import type { EngineTensor } from '../../building/engine-directory.js';
import type { SamplingBatch, SamplingOutput } from '../../decoding/sampling-batch.js';
import type { ExecutorOptions } from '../executor.js';

/** What of an engine such an executor needs. Unlike the native one it copies the weights, once. */
export interface RunnableEngine {
  plan: NetworkPlan;
  weightsFile: string;
  tensors: EngineTensor[];
}

/**
 * Runs the ops of a network by a tensor library. What an executor is beside that (checks of the batch, logits that are
 * handed out, sampling on the host, the rules of begin and finish) PortableExecutor makes of it.
 *
 *   ops of the plan    embedding ... attention ... linear | selectRows norm linear (softCap)
 *                      `- forward: rows of T, writes K, V -'  `- head: rows of T that are named -'
 *
 * Batches have been checked. Nothing here draws, waits or calls back.
 */
export interface NetworkRunner {
  readonly name: 'tensorflow' | 'wasm';
  /** The device or instructions that the runner computes with, for people: 'CPU', 'GPU NVIDIA H100', 'SIMD'. */
  readonly device: string;
  /**
   * Zeroes the batch's new blocks, writes K and V of its rows into their slots and computes all ops over rows of tokens.
   * What `head` reads of them stays until the next call.
   */
  forward(batch: PackedBatch): void;
  /**
   * Computes the ops over rows of logits for these rows of T of the last forward, at most maxLogitRows of them; may be
   * called several times. Where means of sequences are taken (meanPool) it is called once, and the rows are the sequences.
   */
  head(rows: Int32Array): void;
  /** What the last `head` gave [rows x outputWidth]: a view, valid and writable until the next call of any method. */
  logits(): Float32Array;
  /**
   * Draws for all rows of the last `head` where they lie, and says whether it did: false where a row asks for what only
   * the host's sampler can (nothing of `output` is written then). Absent: it never does.
   */
  sample?(sampling: SamplingBatch, output: SamplingOutput): boolean;
  /** Work on blocks, as Executor has it. */
  copyBlocks(source: Int32Array, target: Int32Array): void;
  areFinite(blocks: Int32Array): boolean;
  /** kvCacheBytes counts all blocks, secondary ones too. */
  memory(): Omit<ExecutorMemory, 'secondaryKvCacheBytes'>;
  close(): void;
}

/** Takes all memory and loads the weights. Throws one sentence where it cannot. */
export type OpenRunner = (engine: RunnableEngine, options: ExecutorOptions) => Promise<NetworkRunner>;
