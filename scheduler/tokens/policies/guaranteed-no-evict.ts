import { AdaptersToCompletion } from '../adapter-room.js';
import { blocksToCompletion, stateSlotsToStart } from '../block-needs.js';
import { ReuseDelay } from '../reuse-delay.js';
import {
  type CapacityOptions,
  type CapacityPlan,
  hasStarted,
  type KvCapacity,
  type SchedulableRequest,
} from '../types.js';

/**
 * GUARANTEED_NO_EVICT: a request starts only when its blocks to completion are free, and then runs to its end.
 *
 * 1. Every generating request is scheduled, and its remaining blocks to completion are set aside.
 * 2. Requests in their context phase are then tried in list order, each with its blocks to completion. The first one
 *    that does not fit ends the scan: none may overtake it. A request held by the reuse delay is skipped
 *    and does not end the scan; neither does one whose adapter has no room: see AdaptersToCompletion.
 *    Where the model has states, it needs a free slot for each of its sequences too.
 * 3. Nothing is ever paused. A request in flight, or held, is not scheduled, but it counts, and its remaining blocks
 * are set aside before all others.
 *
 *   list               to completion   left of 8 free blocks
 *     A  generation           2            6      rule 1
 *     B  context              2            3      rule 2, tried after E
 *     C  context              4            3      does not fit: the scan ends
 *     D  context              1                   would fit, but does not overtake C
 *     E  generation           1            5      rule 1
 *   scheduled A E B
 *
 * One case needs more than these rules. With priorities, a request may be put in front of another that is between two
 * chunks of its context. If the newcomer waits for the very blocks that the other holds, the scan ends before reaching
 * it and neither would ever run. So if rules 1 and 2 schedule nothing at all, started contexts are scheduled as far as
 * their blocks to completion go. At least one fits: the one that started last fitted in with the blocks that
 * the others held then, and they have taken none since.
 */
export function guaranteedNoEvict<R extends SchedulableRequest>(
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
  { adapters, delays = true }: Pick<CapacityOptions, 'adapters'> & { delays?: boolean } = {},
): CapacityPlan<R> {
  const scheduled: R[] = [];
  let left = kv.freeBlocks;
  let away = 0;
  for (const request of requests) {
    if (!isAway(request)) continue;
    away += 1;
    left -= blocksToCompletion(request, kv);
  }
  const mostScheduled = maxNumRequests - away;
  for (const request of requests) {
    if (request.phase !== 'generation' || isAway(request)) continue;
    if (scheduled.length >= mostScheduled) return { scheduled, paused: [] };
    scheduled.push(request);
    left -= blocksToCompletion(request, kv);
  }
  let slots = kv.freeStateSlots ?? Number.POSITIVE_INFINITY;
  const room = adapters ? new AdaptersToCompletion(requests, adapters) : null;
  const delay = delays ? new ReuseDelay(requests) : null;
  for (const request of requests) {
    if (request.phase !== 'context' || isAway(request) || delay?.holds(request)) continue;
    if (room?.skips(request)) continue;
    const needed = blocksToCompletion(request, kv);
    const newSlots = stateSlotsToStart(request);
    if (needed > left || newSlots > slots || scheduled.length >= mostScheduled) break;
    scheduled.push(request);
    delay?.schedules(request);
    room?.schedules(request);
    left -= needed;
    slots -= newSlots;
  }
  if (scheduled.length === 0 && away === 0) scheduleStartedContexts(requests, kv, maxNumRequests, scheduled);
  return { scheduled, paused: [] };
}

function isAway({ inFlight, isHeld }: SchedulableRequest): boolean {
  return inFlight === true || isHeld === true;
}

function scheduleStartedContexts<R extends SchedulableRequest>(
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
  scheduled: R[],
): void {
  let left = kv.freeBlocks;
  for (const request of requests) {
    if (!hasStarted(request)) continue;
    if (scheduled.length >= maxNumRequests) break;
    const needed = blocksToCompletion(request, kv);
    if (needed > left) continue;
    scheduled.push(request);
    left -= needed;
  }
}
