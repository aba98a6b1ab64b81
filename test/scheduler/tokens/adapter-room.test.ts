import { describe, expect, it } from 'vitest';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import type { AdapterCapacity, CapacityPolicy, SchedulableRequest } from '../../../scheduler/tokens/types.js';
import { contextRequest, generationRequest, ids } from '../../support/schedulable.js';

const FLYING = { inFlight: true };
const AGED = { hasAged: true };

interface Case {
  rule: string;
  requests: SchedulableRequest[];
  room?: AdapterCapacity;
  freeBlocks?: number;
  maxNumRequests?: number;
  scheduled: bigint[];
  paused?: bigint[];
}

/** Room for two adapters of a page each, unless the case says otherwise; blocks of 8 tokens. */
function check(policy: CapacityPolicy, cases: Case[]): void {
  it.each(cases)(
    '$rule',
    ({ requests, room, freeBlocks = 100, maxNumRequests = 100, scheduled, paused = [] }) => {
      const kv = Object.freeze({
        freeBlocks,
        tokensPerBlock: 8,
        maxAttentionWindow: Number.POSITIVE_INFINITY,
      });
      const adapters = Object.freeze(room ?? { maxPages: 2, maxAdapters: 2 });
      const plan = scheduleCapacity(policy, Object.freeze(requests), kv, maxNumRequests, { adapters });
      expect(ids(plan.scheduled)).toEqual(scheduled);
      expect(ids(plan.paused)).toEqual(paused);
    },
  );
}

/** Of a task whose adapter has `pages` pages. */
const of = (task: bigint, more: Partial<SchedulableRequest> = {}, pages = 1) => ({
  adapter: { taskId: task, pages },
  ...more,
});
/** Not started; one block. */
const pending = (id: bigint, more: Partial<SchedulableRequest> = {}) => contextRequest(id, 4, 2, more);
/** Generating in its only block. */
const running = (id: bigint, more: Partial<SchedulableRequest> = {}) =>
  generationRequest(id, 4, 4, 1, { blocksHeld: 1, ...more });

const EVERYWHERE: Case[] = [
  {
    rule: 'a shortage skips that request alone',
    requests: [
      pending(1n, of(1n)),
      pending(2n, of(2n)),
      pending(3n, of(3n)),
      pending(4n, of(1n)),
      pending(5n),
    ],
    scheduled: [1n, 2n, 4n, 5n],
  },
  {
    rule: 'requests of the same task share its pages',
    requests: [
      pending(1n, of(1n, {}, 2)),
      pending(2n, of(1n, {}, 2)),
      pending(3n, of(2n)),
      pending(4n, of(1n, {}, 2)),
    ],
    scheduled: [1n, 2n, 4n],
  },
  {
    rule: 'pages count, not only adapters',
    requests: [pending(1n, of(1n)), pending(2n, of(2n, {}, 2)), pending(3n, of(3n))],
    scheduled: [1n, 3n],
  },
  {
    rule: 'adapters count, not only pages',
    room: { maxPages: 100, maxAdapters: 1 },
    requests: [pending(1n, of(1n)), pending(2n, of(2n)), pending(3n, of(1n))],
    scheduled: [1n, 3n],
  },
  {
    rule: 'one that lacks its adapter takes no blocks',
    freeBlocks: 3,
    requests: [pending(1n, of(1n)), pending(2n, of(2n)), pending(3n, of(3n)), pending(4n)],
    scheduled: [1n, 2n, 4n],
  },
];

describe.each(['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION', 'STATIC_BATCH'] as const)(
  'adapters with %s',
  (policy) => {
    check(policy, EVERYWHERE);

    it('are loaded one a step, but for a batch that begins as one', () => {
      const isLoaded = (task: bigint) => task === 9n;
      const room = { maxPages: 9, maxAdapters: 9, isLoaded };
      const kv = { freeBlocks: 100, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };
      const requests = [
        pending(1n, of(1n)),
        pending(2n, of(2n)),
        pending(3n),
        pending(4n, of(9n)),
        pending(5n, of(1n)),
      ];
      const { scheduled } = scheduleCapacity(policy, requests, kv, 100, { adapters: room });
      expect(ids(scheduled)).toEqual(policy === 'STATIC_BATCH' ? [1n, 2n, 3n, 4n, 5n] : [1n, 3n, 4n, 5n]);
      const later = { ...room, isLoaded: (task: bigint) => task !== 2n };
      expect(ids(scheduleCapacity(policy, requests, kv, 100, { adapters: later }).scheduled)).toHaveLength(5);
    });

    it('do not count without a limit', () => {
      const kv = { freeBlocks: 100, tokensPerBlock: 8, maxAttentionWindow: Number.POSITIVE_INFINITY };
      const requests = [1n, 2n, 3n, 4n].map((id) => pending(id, of(id)));
      for (const options of [{}, { adapters: null }]) {
        expect(ids(scheduleCapacity(policy, requests, kv, 100, options).scheduled)).toEqual([1n, 2n, 3n, 4n]);
      }
    });
  },
);

describe('GUARANTEED_NO_EVICT', () => {
  check('GUARANTEED_NO_EVICT', [
    {
      rule: 'whatever has started keeps its adapter, wherever it is in the list',
      requests: [pending(1n, of(1n)), running(2n, of(2n)), running(3n, of(3n)), pending(4n, of(2n))],
      scheduled: [2n, 3n, 4n],
    },
    {
      rule: 'also while it is held or in flight',
      requests: [
        pending(1n, of(1n)),
        running(2n, of(2n, { isHeld: true })),
        running(3n, of(3n, FLYING)),
        pending(4n),
      ],
      scheduled: [4n],
    },
    {
      rule: 'also between two chunks',
      requests: [
        pending(1n, of(1n)),
        contextRequest(2n, 24, 4, of(2n, { contextPosition: 8, blocksHeld: 3 })),
        contextRequest(3n, 24, 4, of(3n, { contextPosition: 8, blocksHeld: 3 })),
      ],
      scheduled: [2n, 3n],
    },
    {
      rule: 'behind one that has waited too long nobody starts with an adapter, so that its turn comes',
      requests: [
        running(1n, of(1n)),
        running(2n, of(2n)),
        pending(3n, of(3n, AGED)),
        pending(4n, of(1n)),
        pending(5n),
      ],
      scheduled: [1n, 2n, 5n],
    },
    {
      rule: 'in front of it they do',
      requests: [running(1n, of(1n)), running(2n, of(2n)), pending(4n, of(1n)), pending(3n, of(3n, AGED))],
      scheduled: [1n, 2n, 4n],
    },
    {
      rule: 'one that has waited too long and has room runs as ever',
      requests: [running(1n, of(1n)), pending(3n, of(3n, AGED)), pending(4n, of(1n))],
      scheduled: [1n, 3n, 4n],
    },
  ]);
});

describe('MAX_UTILIZATION', () => {
  check('MAX_UTILIZATION', [
    {
      rule: 'the order of the list counts: a started one is skipped, and keeps its blocks',
      requests: [pending(1n, of(1n)), running(2n, of(2n)), running(3n, of(3n)), running(4n, of(1n))],
      scheduled: [1n, 2n, 4n],
    },
    {
      rule: 'a skipped one can be paused',
      freeBlocks: 0,
      requests: [
        generationRequest(1n, 8, 8, 1, { blocksHeld: 1, ...of(1n) }),
        running(2n, of(2n)),
        running(3n, of(3n)),
      ],
      room: { maxPages: 2, maxAdapters: 2 },
      scheduled: [1n, 2n],
      paused: [3n],
    },
    {
      rule: 'a skipped one that has started counts among those that run at once',
      maxNumRequests: 3,
      requests: [running(1n, of(1n)), running(2n, of(2n)), running(3n, of(3n)), pending(4n)],
      scheduled: [1n, 2n],
    },
    {
      rule: 'adapters of a step in flight take room',
      requests: [
        running(1n, of(1n, FLYING)),
        running(2n, of(2n, FLYING)),
        running(3n, of(3n)),
        running(4n, of(2n)),
      ],
      scheduled: [4n],
    },
    {
      rule: 'one that waits for a step in flight alone keeps its place: the others leave it room',
      requests: [
        running(1n, of(3n)),
        running(2n, of(1n, FLYING)),
        running(3n, of(2n, FLYING)),
        running(4n, of(1n)),
        running(5n, of(2n)),
        running(6n, of(1n)),
      ],
      scheduled: [4n, 6n],
    },
  ]);
});
