import type { CapacityPlan, KvCapacity, SchedulableRequest } from '../types.js';
import { guaranteedNoEvict } from './guaranteed-no-evict.js';

/**
 * The batch of V1: as GUARANTEED_NO_EVICT, but it admits only when no request is generating, so that a batch runs in
 * lockstep to its end before the next one starts; so there is no reuse delay either.
 */
export function staticBatch<R extends SchedulableRequest>(
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
): CapacityPlan<R> {
  const generating = requests.filter((request) => request.phase === 'generation');
  return guaranteedNoEvict(generating.length > 0 ? generating : requests, kv, maxNumRequests, false);
}
