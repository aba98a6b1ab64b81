import { AdaptersOfStep } from '../adapter-room.js';
import { blocksForNextStep, stateSlotsToStart } from '../block-needs.js';
import { ReuseDelay } from '../reuse-delay.js';
import { StartHorizon } from '../start-horizon.js';
import {
  type CapacityOptions,
  type CapacityPlan,
  hasStarted,
  type KvCapacity,
  type SchedulableRequest,
} from '../types.js';

/**
 * MAX_UTILIZATION: pack what fits into this one step, and pause from the end of the list when it does not.
 *
 * 1. The list is walked in order, counting only the blocks that each request takes in this step, and its slots where the model has states. A request held by
 *    the reuse delay is passed over.
 * 2. A request that does not fit (blocks, or maxNumRequests) pauses the last started request in [current, end),
 *    which may be the current one itself.
 * 3. The victim's blocks are credited (not those that others share), the end of the walk moves to the victim, and the
 *    current one is tried again. Nothing at or behind the victim runs in this iteration, so that its blocks are not given away again at once.
 * 4. Without a victim the walk stops.
 *
 *   free 1                    this step   held   free
 *     A  generation               1         4     0     scheduled
 *     B  generation               1         3     0     does not fit; the last started of B C D E is D
 *     C  context, not started     2         0     |
 *     D  generation               0         2     |     <- victim: free 0 + 2 = 2, the end moves here
 *     E  context, not started     1         0     |
 *     B  again                    1         3     1     scheduled
 *     C                           2         0     1     does not fit; nothing in [C, D) has started: stop
 *   scheduled A B, paused D. C and E wait. D stays where it is in the list and restarts from its prompt.
 *
 * A request in flight is passed over: its step has its blocks. A held request is passed over too, but can be paused. If the last
 * started request is in flight, the walk stops and nothing is paused instead of it: it gives way once its step has ended.
 *
 * With a `startHorizon` of some tokens, a request that has not started is passed over while it could not run for that many tokens
 * together with the requests in front of it: see StartHorizon.
 *
 * A request whose adapter has no room with those in front of it is passed over, and keeps its blocks; it can
 * be paused: see AdaptersOfStep.
 *
 * If nothing is in flight, every started request is thereby either scheduled or paused, or lacks its adapter. The first of the list is never paused as
 * long as it fits into the whole pool (see admission), so the list always moves on.
 */
export function maxUtilization<R extends SchedulableRequest>(
  requests: readonly R[],
  kv: Readonly<KvCapacity>,
  maxNumRequests: number,
  { startHorizon = 0, adapters }: CapacityOptions = {},
): CapacityPlan<R> {
  const scheduled: R[] = [];
  const paused: R[] = [];
  const credit = kv.creditOfPauses?.();
  const delay = new ReuseDelay(requests);
  const horizon = startHorizon > 0 ? new StartHorizon(startHorizon, requests, kv) : null;
  const room = adapters ? new AdaptersOfStep(requests, adapters) : null;
  let free = kv.freeBlocks;
  let slots = kv.freeStateSlots ?? Number.POSITIVE_INFINITY;
  let running = 0;
  let current = 0;
  let end = requests.length;
  while (current < end) {
    const request = requests[current]!;
    if (request.inFlight || request.isHeld) {
      horizon?.reserve(request);
      running += 1;
      current += 1;
      continue;
    }
    if (room?.skips(request)) {
      if (hasStarted(request)) {
        horizon?.reserve(request);
        running += 1;
      }
      current += 1;
      continue;
    }
    const isDelayed = delay.holds(request);
    if (horizon?.holds(request) || isDelayed) {
      if (isDelayed) horizon?.reserve(request);
      current += 1;
      continue;
    }
    const needed = blocksForNextStep(request, kv);
    const newSlots = stateSlotsToStart(request);
    if (needed <= free && newSlots <= slots && running < maxNumRequests) {
      scheduled.push(request);
      running += 1;
      delay.schedules(request);
      room?.schedules(request);
      horizon?.reserve(request);
      free -= needed;
      slots -= newSlots;
      current += 1;
      continue;
    }
    const victim = lastStarted(requests, current, end);
    if (victim < 0 || requests[victim]!.inFlight) break;
    const { requestId, blocksHeld } = requests[victim]!;
    const credited = credit ? credit(requestId) : blocksHeld;
    paused.push(requests[victim]!);
    horizon?.pause(requests[victim]!, credited);
    free += credited;
    slots += requests[victim]!.beamWidth;
    end = victim;
  }
  return { scheduled, paused };
}

/** Index of the last started request in [start, end), or -1. */
function lastStarted(requests: readonly SchedulableRequest[], start: number, end: number): number {
  for (let index = end - 1; index >= start; index -= 1) {
    if (hasStarted(requests[index]!)) return index;
  }
  return -1;
}
