import type { MicroBatchScheduler } from '../../scheduler/tokens/micro-batch-scheduler.js';
import type { CapacityPolicy, ScheduledChunk } from '../../scheduler/tokens/types.js';
import type { BatchFormer } from '../batch/batch-former.js';
import type { LlmRequest } from '../request/llm-request.js';

type Chunks = readonly ScheduledChunk<LlmRequest>[];

/**
 * Decisions about an iteration that differ between the three values of modelType. Everything else of the loop is the
 * same for all:
 *
 *                         context             generation         a request leaves
 *   InflightFusedBatching |------- one call of the executor ----|  when its own condition is met
 *   InflightBatching      |---- one call ----|--- a second -----|  when its own condition is met
 *   V1                    |-- padded to the -|- or: with empty -|  with its whole batch
 *                         |   longest        |  slots           |
 */
export interface BatchingScheme {
  /** Policy that the capacity scheduler runs, usually the user's. */
  readonly capacityPolicy: CapacityPolicy;
  /** Decides how many tokens each of the requests with capacity runs. */
  readonly scheduleMicroBatch: MicroBatchScheduler;
  /** The calls of the executor in which an iteration's chunks run, in this order. Called once per iteration. */
  calls(chunks: Chunks): Chunks[];
  /** Appends padding rows, which belong to no request; returns how many of them are slots of a batch that generates. */
  pad(batch: BatchFormer, chunks: Chunks): number;
  /** True for a request that has reached its end but does not leave yet. */
  holds(request: LlmRequest): boolean;
}
