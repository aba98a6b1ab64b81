import { describe, expect, it } from 'vitest';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import type { CapacityPolicy, SchedulableRequest } from '../../../scheduler/tokens/types.js';
import { contextRequest, generationRequest, ids } from '../../support/schedulable.js';

const kv = { freeBlocks: 12, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };

/** A prompt of two blocks and one new token: 3 blocks to completion, 2 for its first chunk. */
const waiting = (id: bigint, firstMissingBlock: number | null, more: Partial<SchedulableRequest> = {}) =>
  contextRequest(id, 16, 1, { firstMissingBlock, ...more });

function scheduled(
  policy: CapacityPolicy,
  requests: SchedulableRequest[],
  freeBlocks = kv.freeBlocks,
  maxNumRequests = 8,
): bigint[] {
  return ids(scheduleCapacity(policy, requests, { ...kv, freeBlocks }, maxNumRequests).scheduled);
}

describe.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)('the reuse delay under %s', (policy) => {
  it('holds a request whose first missing block another of this iteration writes, and nobody behind it', () => {
    expect(scheduled(policy, [waiting(1n, 7), waiting(2n, 7), waiting(3n, 9), waiting(4n, 9)])).toEqual([
      1n,
      3n,
    ]);
  });

  it('holds nobody who misses no full block, or another one', () => {
    expect(scheduled(policy, [waiting(1n, null), waiting(2n, null), waiting(3n, 5), waiting(4n, 6)])).toEqual(
      [1n, 2n, 3n, 4n],
    );
  });

  it('holds a request while a context that runs in chunks will write the block, wherever it stands in the list', () => {
    const running = waiting(9n, 7, { contextPosition: 8, blocksHeld: 2 });
    expect(scheduled(policy, [waiting(1n, 7), running])).toEqual([9n]);
    expect(scheduled(policy, [running, waiting(1n, 7)])).toEqual([9n]);
  });

  it('concerns only the first chunk', () => {
    const chunks = [8n, 9n].map((id) => waiting(id, 7, { contextPosition: 8, blocksHeld: 2 }));
    expect(scheduled(policy, chunks)).toEqual([8n, 9n]);
  });

  it('does not hold for a request that does not run itself', () => {
    const generating = generationRequest(5n, 16, 8, 1, { blocksHeld: 2 });
    expect(scheduled(policy, [generating, waiting(1n, 7)])).toEqual([5n, 1n]);
    // No room for request 1: no context writes the block, and no request overtakes it either.
    const big = contextRequest(1n, 64, 64, { firstMissingBlock: 7 });
    expect(scheduled(policy, [big, waiting(2n, 7)], 7)).toEqual([]);
  });

  it('takes no place of a request that is held', () => {
    expect(scheduled(policy, [waiting(1n, 7), waiting(2n, 7), waiting(3n, 9)], kv.freeBlocks, 2)).toEqual([
      1n,
      3n,
    ]);
    expect(scheduled(policy, [waiting(1n, 7), waiting(2n, 7), waiting(3n, 9)], 6)).toEqual([1n, 3n]);
  });
});

it('STATIC_BATCH has no delay: its batch starts together', () => {
  expect(scheduled('STATIC_BATCH', [waiting(1n, 7), waiting(2n, 7)])).toEqual([1n, 2n]);
});

it('MAX_UTILIZATION credits a pause with what it really frees', () => {
  const requests = [
    generationRequest(1n, 16, 20, 1, { blocksHeld: 2 }),
    generationRequest(2n, 16, 20, 2, { blocksHeld: 3 }),
    generationRequest(3n, 16, 20, 2, { blocksHeld: 3 }),
  ];
  const shared = { ...kv, freeBlocks: 0, creditOfPauses: () => (id: bigint) => (id === 3n ? 0 : 1) };
  const plan = scheduleCapacity('MAX_UTILIZATION', requests, shared, 8);
  expect([ids(plan.scheduled), ids(plan.paused)]).toEqual([[1n], [3n, 2n]]);
});
