import { guaranteedNoEvict } from './policies/guaranteed-no-evict.js';
import { maxUtilization } from './policies/max-utilization.js';
import { staticBatch } from './policies/static-batch.js';
import type {
  CapacityOptions,
  CapacityPlan,
  CapacityPolicy,
  KvCapacity,
  SchedulableRequest,
} from './types.js';

/**
 * Decides which active requests may run in this iteration, by the KV blocks and the adapters they need. The micro-batch scheduler
 * decides how many tokens each of them runs.
 *
 * `requests` is the active list in order (descending priority, arrivals stable). The arguments are not changed. The
 * caller frees the blocks of `paused` first; then every step of `scheduled` finds its blocks, whichever of them run.
 */
export function scheduleCapacity<R extends SchedulableRequest>(
  policy: CapacityPolicy,
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
  options: CapacityOptions = {},
): CapacityPlan<R> {
  switch (policy) {
    case 'GUARANTEED_NO_EVICT':
      return guaranteedNoEvict(requests, kv, maxNumRequests, options);
    case 'MAX_UTILIZATION':
      return maxUtilization(requests, kv, maxNumRequests, options);
    case 'STATIC_BATCH':
      return staticBatch(requests, kv, maxNumRequests, options);
  }
}
