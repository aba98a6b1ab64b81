import { SHARE, shown, type Values, wholeNumber } from '../../base/option-values.js';
import { SkeinError } from '../../base/skein-error.js';
import type { BatcherConfig } from './dynamic-batcher.js';
import { ONE_LEVEL, type QueuePolicy } from './queue-policy.js';
import type { SequenceBatcherConfig } from './sequence-batcher.js';

// The batchers of other servers, as configurations of the one batcher here.

/** A batcher was asked for with a limit that it cannot have. The message names the field, its range and what was given. */
export class BatcherLimitError extends SkeinError {
  override name = 'BatcherLimitError';
  override readonly code = 'SKEIN_BATCHER_LIMIT';
}

/** A queue policy as a model's configuration has it. */
interface ConfiguredPolicy {
  readonly timeout_action: 'REJECT' | 'DELAY';
  readonly default_timeout_microseconds: number;
  readonly allow_timeout_override: boolean;
  readonly max_queue_size: number;
}

/** What is read of a model's configuration: `max_batch_size` and `dynamic_batching`, checked. */
export interface ConfiguredBatching {
  readonly max_batch_size: number;
  readonly dynamic_batching?:
    | {
        readonly preferred_batch_size: readonly number[];
        readonly max_queue_delay_microseconds: number;
        readonly priority_levels: number;
        readonly default_priority_level: number;
        readonly default_queue_policy: ConfiguredPolicy;
        readonly priority_queue_policy: Readonly<Record<string, ConfiguredPolicy>>;
      }
    | undefined;
}

/**
 * The batcher that a model's configuration describes: with `dynamic_batching {}` whatever waits goes, up to max_batch_size, once an
 * instance is free; without it, or with max_batch_size 0, every request runs alone.
 */
export function modelBatcher({
  max_batch_size,
  dynamic_batching: batching,
}: ConfiguredBatching): BatcherConfig {
  const maxBatchSize = Math.max(1, max_batch_size);
  if (batching === undefined) return { ...alone(maxBatchSize), levels: ONE_LEVEL };
  const { priority_levels: count, default_priority_level, priority_queue_policy } = batching;
  const policies = Object.entries(priority_queue_policy).map(
    ([level, policy]) => [Number(level), policyFrom(policy)] as const,
  );
  const levels = {
    count,
    default: default_priority_level,
    defaultPolicy: policyFrom(batching.default_queue_policy),
    policies: new Map(policies),
  };
  if (max_batch_size === 0) return { ...alone(maxBatchSize), levels };
  return {
    maxBatchSize,
    oneByOne: false,
    preferred: batching.preferred_batch_size,
    maxDelayUs: batching.max_queue_delay_microseconds,
    levels,
  };
}

/** What is read of a model's configuration: `max_batch_size` and `sequence_batching`, checked. */
export interface ConfiguredSequences {
  readonly max_batch_size: number;
  readonly sequence_batching: {
    readonly max_sequence_idle_microseconds: number;
    readonly direct?:
      | { readonly max_queue_delay_microseconds: number; readonly minimum_slot_utilization: number }
      | undefined;
    readonly oldest?:
      | {
          readonly max_candidate_sequences: number;
          readonly preferred_batch_size: readonly number[];
          readonly max_queue_delay_microseconds: number;
        }
      | undefined;
  };
}

/**
 * The sequence batcher that a model's configuration describes. A model that takes no batches has one slot; `max_candidate_sequences: 0` means as many
 * as a batch has rows.
 */
export function sequenceBatcher(
  { max_batch_size, sequence_batching: batching }: ConfiguredSequences,
  instances: number,
): SequenceBatcherConfig {
  const maxBatchSize = Math.max(1, max_batch_size);
  const { direct, oldest } = batching;
  const common = { instances, maxIdleUs: batching.max_sequence_idle_microseconds };
  if (oldest === undefined) {
    const strategy = {
      kind: 'direct',
      maxBatchSize,
      minimumUtilization: direct?.minimum_slot_utilization ?? 0,
      maxDelayUs: direct?.max_queue_delay_microseconds ?? 0,
    } as const;
    return { ...common, slots: maxBatchSize, strategy };
  }
  const strategy = {
    kind: 'oldest',
    maxBatchSize,
    preferred: oldest.preferred_batch_size,
    maxDelayUs: oldest.max_queue_delay_microseconds,
  } as const;
  return { ...common, slots: oldest.max_candidate_sequences || maxBatchSize, strategy };
}

/**
 * The soft batcher of the AMD Inference Server: a batch goes when it is full, or so long after the first of its requests came.
 * With an infinite time it is their hard batcher: as requests are never cut, one whose rows no longer fit sends the batch before it on its way.
 * @param timeoutUs above 0
 */
export function softBatcher({
  batchSize,
  timeoutUs,
}: {
  batchSize: number;
  timeoutUs: number;
}): BatcherConfig {
  return {
    maxBatchSize: batchSize,
    oneByOne: false,
    preferred: [batchSize],
    maxDelayUs: timeoutUs,
    levels: ONE_LEVEL,
  };
}

/** Limits of a batched service. */
export interface ServiceLimits {
  /** Elements of a batch: 1 to 10000. */
  maxBatchSize: number;
  /** Seconds that the first element of a batch waits for others: above 0 and at most 1; default 0.1. */
  timeoutSeconds?: number | undefined;
  /** Batches on their way through pre-processing, worker and post-processing: 1 to 128; default 32. */
  maxQueueSize?: number | undefined;
}

const SERVICE_VALUES: Readonly<Record<keyof ServiceLimits, Values<number>>> = {
  maxBatchSize: wholeNumber(1, 10_000),
  timeoutSeconds: SHARE,
  maxQueueSize: wholeNumber(1, 128),
};

/**
 * A batched service: elements are gathered into a buffer of maxBatchSize, which goes when it is full, or timeoutSeconds after its first
 * element. At most maxQueueSize batches are under way: at that number, no instance is free, the buffer goes
 * on filling, and a caller that finds it full waits. Where the service asks again each tenth of the timeout
 * whether a batch may go, and its callers each fiftieth whether the buffer has room, here the end of a batch
 * is what calls `next`; callers are served in order of arrival, and the time of one that waited for the
 * buffer counts from when it came.
 * @throws BatcherLimitError
 */
export function serviceBatcher(limits: ServiceLimits): { batcher: BatcherConfig; batchesAhead: number } {
  const { maxBatchSize, timeoutSeconds = 0.1, maxQueueSize = 32 } = limits;
  for (const [name, value] of Object.entries({ maxBatchSize, timeoutSeconds, maxQueueSize })) {
    const { accepts, expected } = SERVICE_VALUES[name as keyof ServiceLimits];
    if (accepts(value)) continue;
    throw new BatcherLimitError(`${name} of a batched service is ${shown(value)}; it must be ${expected}.`);
  }
  const batcher = softBatcher({ batchSize: maxBatchSize, timeoutUs: timeoutSeconds * 1e6 });
  return { batcher, batchesAhead: maxQueueSize };
}

function alone(maxBatchSize: number): Omit<BatcherConfig, 'levels'> {
  return { maxBatchSize, oneByOne: true, preferred: [], maxDelayUs: 0 };
}

function policyFrom(policy: ConfiguredPolicy): QueuePolicy {
  return {
    timeoutAction: policy.timeout_action,
    timeoutUs: policy.default_timeout_microseconds,
    allowTimeoutOverride: policy.allow_timeout_override,
    maxQueueSize: policy.max_queue_size,
  };
}
