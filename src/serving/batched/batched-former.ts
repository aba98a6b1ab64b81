import { InferError } from '../../../callbacks/infer/infer-error.js';
import { type BatchFormer, type Formed, NO_BATCH } from '../../../host/batch/batch-former.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { immediateBatcher } from '../../../scheduler/batcher-presets.js';
import { type BatcherConfig, DynamicBatcher } from '../../../scheduler/dynamic-batcher.js';
import type { QueuePolicy } from '../../../scheduler/queue-policy.js';
import type { BatchedEntry } from './batched-entry.js';

/** Requests of one batch, in its order. */
export type Batch = readonly BatchedEntry[];

/** The dynamic batcher as a batch host asks it. */
export class BatchedFormer implements BatchFormer<BatchedEntry, Batch> {
  readonly #batcher: DynamicBatcher<BatchedEntry>;

  constructor(config: ModelConfig) {
    this.#batcher = new DynamicBatcher(batcherOf(config));
  }

  add(entry: BatchedEntry, nowUs: number): void {
    if (this.#batcher.add(entry, nowUs) === null) return;
    throw refused(entry, 'Exceeds maximum queue size');
  }

  remove(entry: BatchedEntry): void {
    this.#batcher.remove(entry);
  }

  form(nowUs: number, hasRoom: boolean, isDraining: boolean): Formed<BatchedEntry, Batch> {
    if (this.#batcher.size === 0) return NO_BATCH;
    const { batch, rejected, wakeAtUs } = this.#batcher.next(nowUs, { hasRoom, isDraining });
    const refusals = rejected.map((entry) => ({ entry, error: refused(entry, 'Request timeout expired') }));
    return { batch, refused: refusals, wakeAtUs };
  }
}

function refused({ id }: BatchedEntry, message: string): InferError {
  return new InferError(`[request id: ${id === '' ? '<id_unknown>' : id}] ${message}`, 'unavailable');
}

/** The batcher's configuration of a model: without `dynamic_batching` nothing waits for others. */
export function batcherOf({
  max_batch_size: maxBatchSize,
  dynamic_batching: batching,
}: ModelConfig): BatcherConfig {
  if (batching === undefined) return { ...immediateBatcher(0) };
  const { priority_queue_policy: policies, default_queue_policy: common } = batching;
  const policyOf = (level: number): QueuePolicy => {
    const policy = policies[String(level)] ?? common;
    return {
      timeoutAction: policy.timeout_action === 'DELAY' ? 'delay' : 'reject',
      defaultTimeoutUs: policy.default_timeout_microseconds,
      allowTimeoutOverride: policy.allow_timeout_override,
      maxQueueSize: policy.max_queue_size,
    };
  };
  const numLevels = Math.max(1, batching.priority_levels);
  return {
    maxBatchSize,
    preferred: batching.preferred_batch_size,
    maxDelayUs: batching.max_queue_delay_microseconds,
    levels: Array.from({ length: numLevels }, (_, i) => policyOf(i + 1)),
    defaultLevel: Math.max(1, batching.default_priority_level),
  };
}

/** Requests of equal text go into one batch: sizes of all inputs behind the batch dimension, but for ragged ones. */
export function fitOf(
  { input: inputs, max_batch_size }: ModelConfig,
  entryInputs: BatchedEntry['inputs'],
): string {
  if (max_batch_size === 0) return '';
  const parts: string[] = [];
  for (const { name, dims, allow_ragged_batch: isRagged } of inputs) {
    const given = entryInputs.find((one) => one.name === name);
    if (given === undefined) parts.push('-');
    else if (!isRagged && dims.includes(-1)) parts.push(given.shape.slice(1).join('x'));
    else parts.push('+');
  }
  return parts.join(' ');
}
