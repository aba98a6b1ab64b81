import { describe, expect, it } from 'vitest';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import type { SchedulableRequest, SchedulerPolicy } from '../../../scheduler/tokens/types.js';
import {
  contextRequest as context,
  generationRequest as generation,
  ids,
} from '../../support/schedulable.js';

const FLYING = { inFlight: true };
/** Generating, its `held` blocks of 8 full; its next step needs one more, and so does its completion. */
const atBorder = (id: bigint, held: number, more: Partial<SchedulableRequest> = {}) =>
  generation(id, held * 8, 8, 1, { blocksHeld: held, ...more });
/** Not started; first step and completion both need `blocks`. */
const pending = (id: bigint, blocks: number, more: Partial<SchedulableRequest> = {}) =>
  context(id, blocks * 8 - 1, 1, more);
/** In its first chunk, which took the blocks of the prompt; completion needs `rest` more. */
const firstChunk = (id: bigint, blocks: number, rest: number) =>
  context(id, blocks * 8, rest * 8, { blocksHeld: blocks, inFlight: true });

interface Case {
  rule: string;
  requests: SchedulableRequest[];
  freeBlocks: number;
  maxNumRequests?: number;
  scheduled: bigint[];
  paused?: bigint[];
}

function check(policy: SchedulerPolicy, cases: Case[]): void {
  it.each(cases)('$rule', ({ requests, freeBlocks, maxNumRequests = 100, scheduled, paused = [] }) => {
    const kv = { freeBlocks, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };
    const plan = scheduleCapacity(policy, requests, kv, maxNumRequests);
    expect(ids(plan.scheduled)).toEqual(scheduled);
    expect(ids(plan.paused)).toEqual(paused);
  });
}

describe('beside requests in flight, GUARANTEED_NO_EVICT', () => {
  check('GUARANTEED_NO_EVICT', [
    {
      rule: 'schedules the others, and sets aside what those need to completion',
      requests: [atBorder(1n, 2, FLYING), pending(2n, 2), pending(3n, 1)],
      freeBlocks: 3,
      scheduled: [2n],
    },
    {
      rule: 'sets it aside too for a context in its first chunk, wherever it is in the list',
      requests: [pending(1n, 2), pending(2n, 1), firstChunk(3n, 3, 2)],
      freeBlocks: 4,
      scheduled: [1n],
    },
    {
      rule: 'counts them in the number of requests',
      requests: [atBorder(1n, 1, FLYING), atBorder(2n, 1), atBorder(3n, 1)],
      freeBlocks: 9,
      maxNumRequests: 2,
      scheduled: [2n],
    },
    {
      rule: 'waits for them where nothing else can run',
      requests: [
        pending(1n, 5),
        atBorder(2n, 2, FLYING),
        context(3n, 32, 8, { contextPosition: 8, blocksHeld: 4 }),
      ],
      freeBlocks: 2,
      scheduled: [],
    },
    {
      rule: 'runs contexts between two chunks where nothing is in flight',
      requests: [pending(1n, 5), context(3n, 32, 8, { contextPosition: 8, blocksHeld: 4 })],
      freeBlocks: 2,
      scheduled: [3n],
    },
  ]);
});

describe('beside requests in flight, MAX_UTILIZATION', () => {
  check('MAX_UTILIZATION', [
    {
      rule: 'counts nothing for them: their step has its blocks',
      requests: [atBorder(1n, 2, FLYING), atBorder(2n, 2), pending(3n, 1)],
      freeBlocks: 2,
      scheduled: [2n, 3n],
    },
    {
      rule: 'pauses the last started of the others',
      requests: [atBorder(1n, 2, FLYING), atBorder(2n, 2), atBorder(3n, 2)],
      freeBlocks: 0,
      scheduled: [2n],
      paused: [3n],
    },
    {
      rule: 'pauses nothing instead of the last started one while that is in flight',
      requests: [atBorder(1n, 2), atBorder(2n, 2), atBorder(3n, 2, FLYING)],
      freeBlocks: 1,
      scheduled: [1n],
    },
    {
      rule: 'holds a context in its first chunk for started',
      requests: [atBorder(1n, 2), firstChunk(2n, 3, 1)],
      freeBlocks: 0,
      scheduled: [],
    },
    {
      rule: 'counts them in the number of requests',
      requests: [atBorder(1n, 1, FLYING), pending(2n, 1), pending(3n, 1)],
      freeBlocks: 9,
      maxNumRequests: 2,
      scheduled: [2n],
    },
  ]);
});

describe.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const)('%s', (policy) => {
  const kv = { freeBlocks: 20, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };

  it('holds back a request whose first missing block one in flight is writing', () => {
    const writer = { ...firstChunk(1n, 3, 1), firstMissingBlock: 7 };
    const requests = [
      writer,
      pending(2n, 2, { firstMissingBlock: 7 }),
      pending(3n, 2, { firstMissingBlock: 8 }),
    ];
    expect(ids(scheduleCapacity(policy, requests, kv, 100).scheduled)).toEqual([3n]);
  });

  it('waits where all are in flight', () => {
    const requests = [atBorder(1n, 2, FLYING), firstChunk(2n, 3, 1)];
    expect(scheduleCapacity(policy, requests, kv, 100)).toEqual({ scheduled: [], paused: [] });
  });
});
