import { describe, expect, it } from 'vitest';
import { longestContext, scheduleMicroBatch } from '../../../scheduler/tokens/micro-batch-scheduler.js';
import type { MicroBatchLimits, SchedulableRequest } from '../../../scheduler/tokens/types.js';
import { contextRequest as context, generationRequest } from '../../support/schedulable.js';

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
      rule: 'exactly maxSequences run, beams counted, and the walk stops at one more',
      requests: [generation(1n, { beamWidth: 3 }), generation(2n), generation(3n)],
      limits: { maxSequences: 4 },
      batch: [
        [1n, 0],
        [2n, 0],
      ],
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

describe('SHORTEST_FIRST', () => {
  const passedOver = 3;
  check({ policy: 'SHORTEST_FIRST', unit: 8 }, [
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
      rule: 'what can end does, and a long one waits for it',
      requests: [context(1n, 30, 5), context(2n, 6, 5), context(3n, 3, 5)],
      limits: { maxNumTokens: 20 },
      batch: [
        [2n, 6],
        [3n, 3],
      ],
    },
    {
      rule: 'the shortest of those that can end first; ties in the order of the list',
      requests: [context(1n, 9, 5), context(2n, 7, 5), context(3n, 7, 5), context(4n, 2, 5)],
      limits: { maxNumTokens: 10 },
      batch: [
        [2n, 7],
        [4n, 2],
      ],
    },
    {
      rule: 'by what is left, not by the length of the prompt',
      requests: [context(1n, 100, 5), context(2n, 200, 5, { contextPosition: 192 })],
      limits: { maxNumTokens: 16 },
      batch: [[2n, 8]],
    },
    {
      rule: 'where nothing can end, the one with the least left is cut, and the next gets what it leaves',
      requests: [context(1n, 90, 5), context(2n, 50, 5), context(3n, 60, 5)],
      limits: { maxNumTokens: 44 },
      batch: [[2n, 40]],
    },
    {
      rule: 'the first of the list, passed three times, goes first; who can end still does',
      requests: [context(1n, 30, 5, { passedOver }), context(2n, 6, 5), context(3n, 3, 5)],
      limits: { maxNumTokens: 20 },
      batch: [
        [1n, 16],
        [3n, 3],
      ],
    },
    {
      rule: 'passed only twice, it goes on waiting',
      requests: [context(1n, 30, 5, { passedOver: 2 }), context(2n, 6, 5)],
      limits: { maxNumTokens: 20 },
      batch: [[2n, 6]],
    },
    {
      rule: 'the second of the list has no turn of its own',
      requests: [context(1n, 80, 5), context(2n, 90, 5, { passedOver: 50 }), context(3n, 6, 5)],
      limits: { maxNumTokens: 20 },
      batch: [[3n, 6]],
    },
    {
      rule: 'a higher priority is not passed by a shorter context of a lower one, which gets what is left',
      requests: [context(1n, 30, 5, { priority: 0.9 }), context(2n, 4, 5, { priority: 0.5 })],
      limits: { maxNumTokens: 20 },
      batch: [
        [1n, 16],
        [2n, 4],
      ],
    },
    {
      rule: 'a long context of a lower priority waits for those that end, but not for ever',
      requests: [
        context(1n, 4, 5, { priority: 0.9 }),
        context(2n, 90, 5, { priority: 0.5, passedOver: 3 }),
        context(3n, 90, 5, { priority: 0.2, passedOver: 2 }),
      ],
      limits: { maxNumTokens: 30 },
      batch: [
        [1n, 4],
        [2n, 24],
      ],
    },
    {
      rule: 'generation takes its tokens first',
      requests: [context(1n, 40, 5), context(2n, 9, 5), generation(3n)],
      limits: { maxNumTokens: 9 },
      batch: [
        [2n, 8],
        [3n, 0],
      ],
    },
  ]);

  describe('with maxContextLength', () => {
    check({ policy: 'SHORTEST_FIRST', unit: 8, maxContextLength: 20 }, [
      {
        rule: 'what is longer cannot end; several are cut beside one another',
        requests: [context(1n, 40, 5), context(2n, 21, 5)],
        batch: [
          [1n, 16],
          [2n, 16],
        ],
      },
    ]);
  });
});

describe('longestChunk', () => {
  /** There is time for 24 tokens at the beginning of a prompt, and after 100 for 4. */
  const longestChunk = ({ contextPosition }: SchedulableRequest) => (contextPosition < 100 ? 24 : 4);
  const far = { contextPosition: 100 };

  describe('with FIRST_COME_FIRST_SERVED', () => {
    check({ policy: 'FIRST_COME_FIRST_SERVED', unit: 8, longestChunk }, [
      {
        rule: 'cuts what is longer, although the tokens would do; others run whole beside it',
        requests: [context(1n, 30, 5), context(2n, 24, 5), context(3n, 20, 5)],
        batch: [
          [1n, 24],
          [2n, 24],
          [3n, 20],
        ],
      },
      {
        rule: 'is shared by all that are cut: two thirds, and what is left of a third',
        requests: [context(1n, 40, 5, { contextPosition: 15 }), context(2n, 30, 5), context(3n, 31, 5)],
        limits: { maxNumTokens: 23 },
        batch: [[1n, 16]],
      },
      {
        rule: 'lets whole ones take four times as long together: a fifth is cut to what is left of that',
        requests: [1n, 2n, 3n, 4n, 5n].map((id) => context(id, 20, 5)),
        batch: [
          [1n, 20],
          [2n, 20],
          [3n, 20],
          [4n, 20],
          [5n, 16],
        ],
      },
      {
        rule: 'may be less than a unit, where tokens attend to many',
        requests: [context(1n, 130, 5, far), context(2n, 30, 5)],
        batch: [[1n, 4]],
      },
      {
        rule: 'lets the rest of a long prompt run whole where there is time for it',
        requests: [context(1n, 104, 5, far), context(2n, 30, 5)],
        batch: [
          [1n, 4],
          [2n, 24],
        ],
      },
    ]);
  });

  describe('with EQUAL_PROGRESS', () => {
    check({ policy: 'EQUAL_PROGRESS', unit: 8, longestChunk }, [
      {
        rule: 'is shared in turns',
        requests: [context(1n, 30, 5), context(2n, 30, 5), context(3n, 20, 5)],
        batch: [
          [1n, 16],
          [2n, 8],
          [3n, 20],
        ],
      },
      {
        rule: 'ends where all together have taken four times as long',
        requests: [1n, 2n, 3n, 4n, 5n].map((id) => context(id, 24, 5)),
        batch: [
          [1n, 24],
          [2n, 24],
          [3n, 16],
          [4n, 16],
          [5n, 16],
        ],
      },
      {
        rule: 'gives as little as there is time for',
        requests: [context(1n, 130, 5, far), context(2n, 130, 5, far)],
        batch: [[1n, 4]],
      },
    ]);
  });

  describe('with SHORTEST_FIRST', () => {
    check({ policy: 'SHORTEST_FIRST', unit: 8, longestChunk }, [
      {
        rule: 'says who is long',
        requests: [context(1n, 30, 5), context(2n, 24, 5)],
        batch: [[2n, 24]],
      },
      {
        rule: 'leaves the longest of many that together take more than four times as long to the next iteration',
        requests: [context(1n, 24, 5), ...[2n, 3n, 4n, 5n].map((id) => context(id, 20, 5))],
        batch: [
          [2n, 20],
          [3n, 20],
          [4n, 20],
          [5n, 20],
        ],
      },
      {
        rule: 'cuts a prompt that is alone',
        requests: [context(1n, 90, 5), generation(2n)],
        batch: [
          [1n, 24],
          [2n, 0],
        ],
      },
      {
        rule: 'leaves nothing for a second one that is cut',
        requests: [context(1n, 90, 5), context(2n, 80, 5), context(3n, 190, 5, far)],
        batch: [[2n, 24]],
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
