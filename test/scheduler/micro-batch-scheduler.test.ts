import { describe, expect, it } from 'vitest';
import { longestContext, scheduleMicroBatch } from '../../scheduler/micro-batch-scheduler.js';
import type { MicroBatchLimits, SchedulableRequest } from '../../scheduler/types.js';
import { contextRequest as context, generationRequest } from '../support/schedulable.js';

interface Case {
  rule: string;
  requests: SchedulableRequest[];
  limits?: Partial<MicroBatchLimits>;
  /** [request, context tokens], in the order of the batch. */
  batch: [bigint, number][];
}

const generation = (id: bigint, more: Partial<SchedulableRequest> = {}) =>
  generationRequest(id, 10, 50, 5, more);

function check(chunking: MicroBatchLimits['chunking'], cases: Case[]): void {
  it.each(cases)('$rule', ({ requests, limits, batch }) => {
    const all = { maxBatchSize: 100, maxNumTokens: 100, ...(chunking ? { chunking } : {}), ...limits };
    const plan = scheduleMicroBatch(Object.freeze(requests), Object.freeze(all));
    expect(plan.map(({ request, contextTokens }) => [request.requestId, contextTokens])).toEqual(batch);
  });
}

describe('without chunking', () => {
  check(undefined, [
    { rule: 'nothing in, nothing out', requests: [], batch: [] },
    {
      rule: 'contexts come before generation in the batch, both in list order',
      requests: [generation(1n), context(2n, 7, 5), generation(3n), context(4n, 3, 5)],
      batch: [
        [2n, 7],
        [4n, 3],
        [1n, 0],
        [3n, 0],
      ],
    },
    {
      rule: 'the walk stops where maxNumTokens would be exceeded, even for one behind that would fit',
      requests: [generation(1n), context(2n, 8, 5), context(3n, 3, 5), generation(4n)],
      limits: { maxNumTokens: 11 },
      batch: [
        [2n, 8],
        [1n, 0],
      ],
    },
    {
      rule: 'exactly maxNumTokens fit',
      requests: [generation(1n), context(2n, 8, 5), context(3n, 3, 5)],
      limits: { maxNumTokens: 12 },
      batch: [
        [2n, 8],
        [3n, 3],
        [1n, 0],
      ],
    },
    {
      rule: 'the walk stops at maxBatchSize',
      requests: [generation(1n), context(2n, 8, 5), generation(3n)],
      limits: { maxBatchSize: 2 },
      batch: [
        [2n, 8],
        [1n, 0],
      ],
    },
    {
      rule: 'generation costs its beams and its draft; beams are one request of the batch',
      requests: [
        generation(1n, { beamWidth: 4, draftLength: 2 }),
        generation(2n, { beamWidth: 4 }),
        generation(3n),
      ],
      limits: { maxNumTokens: 10, maxBatchSize: 2 },
      batch: [
        [1n, 0],
        [2n, 0],
      ],
    },
    {
      rule: 'a draft that no longer fits stops the walk',
      requests: [
        generation(1n, { beamWidth: 4, draftLength: 2 }),
        generation(2n, { draftLength: 4 }),
        generation(3n),
      ],
      limits: { maxNumTokens: 10 },
      batch: [[1n, 0]],
    },
    {
      rule: 'a context costs its draft as well',
      requests: [context(1n, 8, 5, { draftLength: 3 }), generation(2n)],
      limits: { maxNumTokens: 11 },
      batch: [[1n, 8]],
    },
  ]);
});

describe('FIRST_COME_FIRST_SERVED', () => {
  check({ policy: 'FIRST_COME_FIRST_SERVED', unit: 8 }, [
    {
      rule: 'whole contexts where all of them fit, whatever the unit',
      requests: [context(1n, 13, 5), context(2n, 3, 5), generation(3n)],
      limits: { maxNumTokens: 17 },
      batch: [
        [1n, 13],
        [2n, 3],
        [3n, 0],
      ],
    },
    {
      rule: 'generation takes its tokens first, though it is behind in the list',
      requests: [context(1n, 30, 5), generation(2n), generation(3n)],
      limits: { maxNumTokens: 17 },
      batch: [
        [1n, 8],
        [2n, 0],
        [3n, 0],
      ],
    },
    {
      rule: 'the example in the file: 16 and 3, and a zero chunk is not scheduled',
      requests: [context(1n, 30, 5), context(2n, 6, 5), context(3n, 3, 5)],
      limits: { maxNumTokens: 20 },
      batch: [
        [1n, 16],
        [3n, 3],
      ],
    },
    {
      rule: 'the last chunk is what remains',
      requests: [context(1n, 30, 5, { contextPosition: 24 }), context(2n, 30, 5)],
      limits: { maxNumTokens: 20 },
      batch: [
        [1n, 6],
        [2n, 8],
      ],
    },
    {
      rule: 'generation that leaves less than a unit starves a long context, not a short one',
      requests: [context(1n, 30, 5), generation(2n), generation(3n), context(4n, 6, 5)],
      limits: { maxNumTokens: 9 },
      batch: [
        [4n, 6],
        [2n, 0],
        [3n, 0],
      ],
    },
    {
      rule: 'a context without a chunk still takes its place in maxBatchSize',
      requests: [generation(1n), context(2n, 30, 5), generation(3n)],
      limits: { maxBatchSize: 2, maxNumTokens: 8 },
      batch: [[1n, 0]],
    },
    {
      rule: 'contexts do not stop the walk: generation behind them runs',
      requests: [context(1n, 300, 5), context(2n, 300, 5), generation(3n)],
      limits: { maxNumTokens: 40 },
      batch: [
        [1n, 32],
        [3n, 0],
      ],
    },
  ]);

  describe('with maxContextTokens', () => {
    check({ policy: 'FIRST_COME_FIRST_SERVED', unit: 8, maxContextTokens: 20 }, [
      {
        rule: 'chunks share it, and generation does not count',
        requests: [context(1n, 30, 5), generation(2n), context(3n, 6, 5), context(4n, 3, 5)],
        batch: [
          [1n, 16],
          [4n, 3],
          [2n, 0],
        ],
      },
      {
        rule: 'contexts that fit into it run whole',
        requests: [context(1n, 13, 5), generation(2n), context(3n, 7, 5)],
        batch: [
          [1n, 13],
          [3n, 7],
          [2n, 0],
        ],
      },
      {
        rule: 'what maxNumTokens leaves may be less',
        requests: [context(1n, 30, 5), generation(2n)],
        limits: { maxNumTokens: 12 },
        batch: [
          [1n, 8],
          [2n, 0],
        ],
      },
    ]);
  });

  describe('with maxContextLength', () => {
    check({ policy: 'FIRST_COME_FIRST_SERVED', unit: 8, maxContextLength: 20 }, [
      {
        rule: 'a context longer than it is cut although the tokens would do',
        requests: [context(1n, 21, 5), context(2n, 20, 5), context(3n, 9, 5)],
        batch: [
          [1n, 16],
          [2n, 20],
          [3n, 9],
        ],
      },
    ]);
  });
});

describe('EQUAL_PROGRESS', () => {
  check({ policy: 'EQUAL_PROGRESS', unit: 8 }, [
    {
      rule: 'whole contexts where all of them fit',
      requests: [context(1n, 13, 5), context(2n, 3, 5)],
      limits: { maxNumTokens: 16 },
      batch: [
        [1n, 13],
        [2n, 3],
      ],
    },
    {
      rule: 'the example in the file: one unit or the rest each',
      requests: [context(1n, 30, 5), context(2n, 6, 5), context(3n, 3, 5)],
      limits: { maxNumTokens: 20 },
      batch: [
        [1n, 8],
        [2n, 6],
        [3n, 3],
      ],
    },
    {
      rule: 'passes go on until nobody can take more: 24, 16 and 12',
      requests: [context(1n, 40, 5), context(2n, 40, 5), context(3n, 12, 5)],
      limits: { maxNumTokens: 54 },
      batch: [
        [1n, 24],
        [2n, 16],
        [3n, 12],
      ],
    },
    {
      rule: 'one that would pass a limit is skipped, not the end of the pass',
      requests: [context(1n, 40, 5), context(2n, 40, 5), context(3n, 5, 5)],
      limits: { maxNumTokens: 14 },
      batch: [
        [1n, 8],
        [3n, 5],
      ],
    },
    {
      rule: 'generation takes its tokens first',
      requests: [context(1n, 40, 5), context(2n, 40, 5), generation(3n)],
      limits: { maxNumTokens: 24 },
      batch: [
        [1n, 8],
        [2n, 8],
        [3n, 0],
      ],
    },
  ]);

  describe('with maxContextTokens', () => {
    check({ policy: 'EQUAL_PROGRESS', unit: 8, maxContextTokens: 20 }, [
      {
        rule: 'chunks take turns in it',
        requests: [context(1n, 30, 5), context(2n, 6, 5), context(3n, 3, 5), generation(4n)],
        batch: [
          [1n, 8],
          [2n, 6],
          [3n, 3],
          [4n, 0],
        ],
      },
    ]);
  });

  describe('with maxContextLength', () => {
    check({ policy: 'EQUAL_PROGRESS', unit: 8, maxContextLength: 20 }, [
      {
        rule: 'no chunk grows beyond it',
        requests: [context(1n, 60, 5), context(2n, 18, 5)],
        batch: [
          [1n, 16],
          [2n, 18],
        ],
      },
    ]);
  });
});

describe('longestContext', () => {
  it('is one iteration without chunking, less the draft', () => {
    expect(longestContext({ maxBatchSize: 1, maxNumTokens: 64 }, 0)).toBe(64);
    expect(longestContext({ maxBatchSize: 1, maxNumTokens: 64 }, 4)).toBe(60);
  });

  it('has no limit with chunking, as long as an iteration takes one unit', () => {
    const chunking = { policy: 'EQUAL_PROGRESS', unit: 32 } as const;
    const limits = { maxBatchSize: 1, maxNumTokens: 32, chunking };
    expect(longestContext(limits, 0)).toBe(Number.POSITIVE_INFINITY);
    expect(longestContext({ ...limits, maxNumTokens: 31 }, 0)).toBe(31);
    expect(longestContext({ ...limits, chunking: { ...chunking, maxContextLength: 20 } }, 0)).toBe(20);
  });
});
