import type { BatcherConfig } from './dynamic-batcher.js';
import { NO_QUEUE_POLICY } from './queue-policy.js';

const ONE_LEVEL = { levels: [NO_QUEUE_POLICY], defaultLevel: 1 };

/** Whatever waits goes as soon as it can, up to the model's batch: a model whose configuration says nothing of batching. */
export function immediateBatcher(maxBatchSize: number): BatcherConfig {
  return { maxBatchSize, preferred: [], maxDelayUs: 0, ...ONE_LEVEL };
}

/** A full batch goes at once, and a part of one when its first request has waited for so long. Source: the AMD Inference Server. */
export function softBatcher(maxBatchSize: number, timeoutUs: number): BatcherConfig {
  return { maxBatchSize, preferred: [maxBatchSize], maxDelayUs: timeoutUs, ...ONE_LEVEL };
}

/** Full batches alone. Source: the AMD Inference Server. */
export function hardBatcher(maxBatchSize: number): BatcherConfig {
  return softBatcher(maxBatchSize, Number.POSITIVE_INFINITY);
}
