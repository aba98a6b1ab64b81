import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import { scheduleMicroBatch } from '../../scheduler/tokens/micro-batch-scheduler.js';
import type { ScheduledChunk, SchedulerPolicy } from '../../scheduler/tokens/types.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BatchingScheme } from './batching-scheme.js';
import { StaticBatchScheme } from './static-batch.js';

export function createScheme(
  modelType: ModelType,
  policy: SchedulerPolicy,
  maxSeqLen: number,
): BatchingScheme {
  switch (modelType) {
    case 'V1':
      return new StaticBatchScheme(maxSeqLen);
    case 'InflightBatching':
      return new SplitScheme(policy);
    case 'InflightFusedBatching':
      return new FusedScheme(policy);
  }
}

type Chunks = readonly ScheduledChunk<LlmRequest>[];

/** InflightFusedBatching: requests join and leave between iterations, and an iteration is one call. */
class FusedScheme implements BatchingScheme {
  readonly capacityPolicy: SchedulerPolicy;
  readonly scheduleMicroBatch = scheduleMicroBatch;

  constructor(policy: SchedulerPolicy) {
    this.capacityPolicy = policy;
  }

  calls(chunks: Chunks): Chunks[] {
    return chunks.length > 0 ? [chunks] : [];
  }

  pad(): number {
    return 0;
  }

  holds(): boolean {
    return false;
  }
}

/**
 * InflightBatching: like InflightFusedBatching, but contexts and generation run in separate calls, one after the other.
 */
class SplitScheme extends FusedScheme {
  override calls(chunks: Chunks): Chunks[] {
    const contexts = chunks.filter(({ contextTokens }) => contextTokens > 0);
    const generation = chunks.filter(({ contextTokens }) => contextTokens === 0);
    return [contexts, generation].filter((call) => call.length > 0);
  }
}
