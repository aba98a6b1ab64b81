import type { BatcherConfig, QueuedRequest } from '../../scheduler/tensors/dynamic-batcher.js';
import {
  ONE_LEVEL,
  PATIENT,
  type QueueLevels,
  type QueuePolicy,
} from '../../scheduler/tensors/queue-policy.js';

/** A request of a history: its name is what tests compare. */
export interface NamedRequest extends QueuedRequest {
  readonly name: string;
}

export function queued(name: string, rows = 1, more: Partial<NamedRequest> = {}): NamedRequest {
  return { name, rows, fit: '', priority: 0, timeoutUs: 0, ...more };
}

/** A batcher of at most 8 rows without levels; what a case is about is given. */
export function batching(more: Partial<BatcherConfig> = {}): BatcherConfig {
  return { maxBatchSize: 8, oneByOne: false, preferred: [], maxDelayUs: 0, levels: ONE_LEVEL, ...more };
}

/** One level with this policy. */
export function oneLevel(policy: Partial<QueuePolicy>): QueueLevels {
  return { ...ONE_LEVEL, defaultPolicy: { ...PATIENT, ...policy } };
}

export const namesOf = (requests: readonly NamedRequest[]): string =>
  requests.map(({ name }) => name).join(' ');
