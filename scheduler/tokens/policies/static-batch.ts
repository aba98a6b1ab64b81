import type { CapacityOptions, CapacityPlan, KvCapacity, SchedulableRequest } from '../types.js';
import { guaranteedNoEvict } from './guaranteed-no-evict.js';

/**
 * The policy of V1: like GUARANTEED_NO_EVICT, but it admits requests only when none is generating, so that a batch runs
 * in lockstep to its end before the next one starts. For the same reason there is no reuse delay.
 */
export function staticBatch<R extends SchedulableRequest>(
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
  { adapters }: Pick<CapacityOptions, 'adapters'> = {},
): CapacityPlan<R> {
  const generating = requests.filter((request) => request.phase === 'generation');
  return guaranteedNoEvict(generating.length > 0 ? generating : requests, kv, maxNumRequests, {
    // Who does not start with the batch waits for its end, so its adapters are loaded together.
    adapters: adapters && { maxPages: adapters.maxPages, maxAdapters: adapters.maxAdapters },
    delays: false,
  });
}
