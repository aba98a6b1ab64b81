import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import type { SchedulerPolicy } from '../../scheduler/tokens/types.js';
import type { BatchingScheme } from './batching-scheme.js';
import { FusedScheme, SplitScheme } from './in-flight.js';
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
