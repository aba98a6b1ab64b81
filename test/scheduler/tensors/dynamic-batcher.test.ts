import { describe, expect, it } from 'vitest';
import { type BatcherConfig, DynamicBatcher } from '../../../scheduler/tensors/dynamic-batcher.js';
import { ONE_LEVEL, PATIENT, type QueueLevels } from '../../../scheduler/tensors/queue-policy.js';
import { type Arrival, type Instances, timeline } from '../../support/batch-timeline.js';
import { batching, type NamedRequest, oneLevel, queued } from '../../support/queued-requests.js';

interface Case {
  rule: string;
  config?: Partial<BatcherConfig>;
  arrivals: Arrival[];
  instances?: Instances;
  /** When the client that sent it leaves. */
  leaves?: Record<string, number>;
  /** "1000 A B": they go; "300 -C": it is rejected; "0 !D": it is refused; "5 (E)": its sender has left. */
  timeline: string[];
}

function check(base: Partial<BatcherConfig>, cases: Case[]): void {
  it.each(cases)('$rule', ({ config, arrivals, instances, leaves, timeline: expected }) => {
    expect(timeline(batching({ ...base, ...config }), arrivals, instances, leaves)).toEqual(expected);
  });
}

const ones = (atMs: number, names: string): Arrival[] => names.split('').map((name): Arrival => [atMs, name]);
const inSeconds = (seconds: number) => seconds * 1e6;

describe('without a delay', () => {
  check({}, [
    { rule: 'a single request goes at once', arrivals: [[0, 'A']], timeline: ['0 A'] },
    {
      rule: 'whatever waits goes once an instance is free, up to maxBatchSize',
      arrivals: ones(0, 'ABCDEFGHIJ'),
      instances: { fromMs: 5 },
      timeline: ['5 A B C D E F G H', '5 I J'],
    },
    {
      rule: 'rows count, not requests, and nobody passes one that does not fit',
      arrivals: [
        [0, 'A', 5],
        [0, 'B', 4],
        [0, 'C', 3],
      ],
      instances: { fromMs: 5 },
      timeline: ['5 A', '5 B C'],
    },
    {
      rule: 'with oneByOne every request is a batch',
      config: { oneByOne: true },
      arrivals: [
        [0, 'A', 1],
        [0, 'B', 2],
      ],
      timeline: ['0 A', '0 B'],
    },
  ]);

  // A preferred size of 4 or 6, and no delay.
  check({ preferred: [4, 6] }, [
    { rule: 'four are a preferred size', arrivals: ones(0, 'ABCD'), timeline: ['0 A B C D'] },
    { rule: 'five: four, and one', arrivals: ones(0, 'ABCDE'), timeline: ['0 A B C D', '0 E'] },
    {
      rule: 'seven: the largest preferred size, and one',
      arrivals: ones(0, 'ABCDEFG'),
      timeline: ['0 A B C D E F', '0 G'],
    },
    { rule: 'three are none, and do not wait', arrivals: ones(0, 'ABC'), timeline: ['0 A B C'] },
  ]);
});

describe('sizes 2 and 6 preferred, at most 8, a delay of 10 s', () => {
  const small: Partial<NamedRequest> = { fit: '8' };
  const big: Partial<NamedRequest> = { fit: '16' };
  check({ preferred: [2, 6], maxDelayUs: inSeconds(10) }, [
    {
      rule: 'a preferred size goes at once',
      arrivals: [
        [0, 'A', 2],
        [500, 'B', 6],
      ],
      timeline: ['0 A', '500 B'],
    },
    { rule: 'less than any of them waits', arrivals: [[0, 'A', 1]], timeline: ['10000 A'] },
    { rule: 'one between them waits', arrivals: [[0, 'A', 3]], timeline: ['10000 A'] },
    { rule: 'one beyond the largest goes at once', arrivals: [[0, 'A', 7]], timeline: ['0 A'] },
    {
      rule: 'a sum between them waits as long as its oldest has to',
      arrivals: [
        [0, 'A', 1],
        [1000, 'B', 3],
      ],
      timeline: ['10000 A B'],
    },
    {
      rule: 'one of another shape closes the batch and begins the next one',
      arrivals: [
        [0, 'A', 1, big],
        [1000, 'B', 1, small],
      ],
      timeline: ['1000 A', '11000 B'],
    },
    {
      rule: 'so it does for a batch of several',
      arrivals: [
        [0, 'A', 1, big],
        [0, 'B', 3, big],
        [1000, 'C', 1, small],
      ],
      timeline: ['1000 A B', '11000 C'],
    },
    {
      rule: 'and the next one goes at once where it has a preferred size',
      arrivals: [
        [0, 'A', 1, big],
        [0, 'B', 3, big],
        [1000, 'C', 1, small],
        [1000, 'D', 5, small],
      ],
      timeline: ['1000 A B', '1000 C D'],
    },
    {
      rule: 'one beyond the largest size behind another: both go',
      arrivals: [
        [0, 'A', 3],
        [1000, 'B', 7],
      ],
      timeline: ['1000 A', '1000 B'],
    },
    {
      rule: 'one that would take the sum beyond the largest size closes the batch, and waits itself',
      arrivals: [
        [0, 'A', 3],
        [1000, 'B', 4],
      ],
      timeline: ['1000 A', '11000 B'],
    },
    {
      rule: 'the same where both are there before an instance is',
      arrivals: [
        [0, 'A', 3],
        [1000, 'B', 4],
      ],
      instances: { fromMs: 1500 },
      timeline: ['1500 A', '11000 B'],
    },
    {
      rule: 'behind the delay a batch grows to maxBatchSize',
      arrivals: [
        [0, 'A', 3],
        [0, 'B', 4],
        [11_000, 'C', 1],
      ],
      instances: { fromMs: 11_000 },
      timeline: ['11000 A B C'],
    },
    {
      rule: 'the largest preferred size is taken, not the first',
      arrivals: ones(0, 'ABCDEF'),
      timeline: ['0 A B C D E F'],
    },
    {
      rule: 'what a preferred size leaves over waits',
      arrivals: [...ones(0, 'AB'), [1000, 'C']],
      instances: { fromMs: 1000 },
      timeline: ['1000 A B', '11000 C'],
    },
  ]);
});

describe('who leaves', () => {
  check({ preferred: [4], maxDelayUs: inSeconds(1) }, [
    {
      rule: 'makes room: the batch is filled by others',
      arrivals: [...ones(0, 'ABC'), ...ones(300, 'DE')],
      leaves: { B: 200 },
      timeline: ['200 (B)', '300 A C D E'],
    },
    {
      rule: 'takes its delay along',
      arrivals: [
        [0, 'A'],
        [600, 'B'],
      ],
      leaves: { A: 700 },
      timeline: ['700 (A)', '1600 B'],
    },
    {
      rule: 'may let a preferred size come about',
      config: { preferred: [4, 6] },
      arrivals: [
        [0, 'A', 1],
        [0, 'B', 2],
        [0, 'C', 2],
      ],
      leaves: { A: 400 },
      timeline: ['400 (A)', '400 B C'],
    },
  ]);

  it('cannot leave twice, nor when it runs', () => {
    const batcher = new DynamicBatcher<NamedRequest>(batching({ preferred: [2], maxDelayUs: 100 }));
    const [a, b, c] = [queued('A'), queued('B'), queued('C')];
    expect(batcher.remove(a)).toBe(false);
    batcher.add(a, 0);
    batcher.add(b, 1);
    batcher.add(c, 2);
    expect([batcher.remove(a), batcher.remove(a), batcher.size]).toEqual([true, false, 2]);
    expect(batcher.next(3)).toEqual({ batch: [b, c], rejected: [], wakeAtUs: null });
    expect(batcher.remove(b)).toBe(false);
  });

  it('may come back, but not while it waits', () => {
    const batcher = new DynamicBatcher<NamedRequest>(batching({ maxDelayUs: 100 }));
    const request = queued('A');
    batcher.add(request, 0);
    expect(() => batcher.add(request, 1)).toThrow(TypeError);
    batcher.remove(request);
    expect(batcher.add(request, 2)).toBeNull();
    expect(batcher.next(2).wakeAtUs).toBe(102);
  });
});

describe('queue policies, sizes 4 and 8 preferred', () => {
  const maxDelayUs = inSeconds(10);
  const arrivals: Arrival[] = [
    [0, 'A', 1],
    [200, 'B', 2],
    [200, 'C', 2],
  ];
  check({ maxBatchSize: 32, preferred: [4, 8], maxDelayUs }, [
    {
      rule: 'a full queue refuses',
      config: { maxDelayUs: 0, levels: oneLevel({ maxQueueSize: 8 }) },
      arrivals: [[0, 'X', 8], ...ones(500, 'ABCDEFGHIJ')],
      instances: { count: 1, computeMs: 5000 },
      timeline: ['0 X', '500 !I', '500 !J', '5000 A B C D E F G H'],
    },
    {
      rule: 'an expired request makes room in it at once',
      config: { levels: oneLevel({ maxQueueSize: 1, timeoutUs: 100_000 }) },
      arrivals: [
        [0, 'A'],
        [50, 'B'],
        [100, 'C'],
      ],
      instances: { fromMs: 1000 },
      timeline: ['50 !B', '100 -A', '200 -C'],
    },
    {
      rule: 'DELAY: the expired one goes behind, and waits for its delay',
      config: { levels: oneLevel({ timeoutAction: 'DELAY', timeoutUs: 100_000 }) },
      arrivals,
      timeline: ['200 B C', '10000 A'],
    },
    {
      rule: 'DELAY: it stays behind those that come later, and never expires again',
      config: { maxDelayUs: 0, levels: oneLevel({ timeoutAction: 'DELAY', timeoutUs: 100_000 }) },
      arrivals: [
        [0, 'A', 2],
        [10, 'B', 2],
        [500, 'C', 2],
        [550, 'D', 2],
      ],
      instances: { fromMs: 560 },
      timeline: ['560 C D A B'],
    },
    {
      rule: 'REJECT: the expired one is refused, while no instance is free too',
      config: { levels: oneLevel({ timeoutUs: 100_000 }) },
      arrivals,
      instances: { fromMs: 200 },
      timeline: ['100 -A', '200 B C'],
    },
    {
      rule: 'a shorter timeout of its own counts',
      config: { levels: oneLevel({ timeoutUs: 1_000_000, allowTimeoutOverride: true }) },
      arrivals: [[0, 'A', 1, { timeoutUs: 100_000 }], ...arrivals.slice(1)],
      timeline: ['100 -A', '200 B C'],
    },
    {
      rule: 'a longer one does not',
      config: { levels: oneLevel({ timeoutUs: 1_000_000, allowTimeoutOverride: true }) },
      arrivals: [[0, 'A', 1, { timeoutUs: 10_000_000 }], ...arrivals.slice(1)],
      timeline: ['1000 -A', '1000 B C'],
    },
    {
      rule: 'none of its own does where the level does not let it',
      config: { levels: oneLevel({ timeoutUs: 1_000_000 }) },
      arrivals: [[0, 'A', 1, { timeoutUs: 100_000 }], ...arrivals.slice(1)],
      timeline: ['1000 -A', '1000 B C'],
    },
    {
      rule: 'any is shorter than none',
      config: { levels: oneLevel({ allowTimeoutOverride: true }) },
      arrivals: [[0, 'A', 1, { timeoutUs: 100_000 }], ...arrivals.slice(1)],
      timeline: ['100 -A', '200 B C'],
    },
  ]);
});

describe('levels', () => {
  const levels: QueueLevels = { ...ONE_LEVEL, count: 2, default: 2 };
  const mixed: Arrival[] = [
    [0, 'A', 2],
    [100, 'B', 1],
    [300, 'C', 2, { priority: 1 }],
  ];
  const base = { maxBatchSize: 32, preferred: [4, 8], maxDelayUs: inSeconds(10) };
  check(base, [
    {
      rule: 'the higher one goes first, and fills up with the lower one',
      config: { levels },
      arrivals: mixed,
      timeline: ['300 C A', '10100 B'],
    },
    {
      rule: 'there may be as many as numbers',
      config: { levels: { ...levels, count: 2 ** 53, default: 2 ** 32 } },
      arrivals: mixed,
      timeline: ['300 C A', '10100 B'],
    },
    {
      rule: 'a level that there is not is the default one',
      config: { levels, maxDelayUs: 0 },
      arrivals: [
        [0, 'A', 1, { priority: 3 }],
        [0, 'B', 1, { priority: 1 }],
        [0, 'C', 1, { priority: 0 }],
        [0, 'D', 1, { priority: 2 }],
      ],
      timeline: ['0 B A C D'],
    },
    {
      rule: 'each has a queue of its own size',
      config: {
        levels: { ...levels, policies: new Map([[1, { ...PATIENT, maxQueueSize: 1 }]]) },
        maxDelayUs: 0,
      },
      arrivals: [...ones(0, 'ABC'), [0, 'D', 1, { priority: 1 }], [0, 'E', 1, { priority: 1 }]],
      instances: { fromMs: 1 },
      timeline: ['0 !E', '1 D A B C'],
    },
  ]);

  // What has expired goes after its own level, and before the next one.
  const policy = { ...PATIENT, timeoutUs: 11_000_000, allowTimeoutOverride: true };
  check({ ...base, preferred: [4, 8, 32] }, [
    {
      rule: 'level 1 delays and level 2 rejects',
      config: {
        levels: {
          ...levels,
          defaultPolicy: { ...policy, timeoutAction: 'DELAY' },
          policies: new Map([[2, policy]]),
        },
      },
      arrivals: [
        [0, 'A', 2, { priority: 1 }],
        [200, 'B', 1, { priority: 1, timeoutUs: 1_000_000 }],
        [400, 'C', 2, { priority: 1 }],
        [600, 'D', 2, { priority: 2, timeoutUs: 2_000_000 }],
        [800, 'E', 3, { priority: 2 }],
        [1000, 'F', 6, { priority: 2 }],
      ],
      timeline: ['1200 A C', '2600 -D', '2600 B E', '11000 F'],
    },
  ]);
});

describe('the clock', () => {
  it('stands still where it would run backwards', () => {
    const batcher = new DynamicBatcher<NamedRequest>(batching({ maxDelayUs: 100 }));
    batcher.add(queued('A'), 1000);
    batcher.add(queued('B'), 400);
    expect(batcher.next(500).wakeAtUs).toBe(1100);
    expect(batcher.next(1100).batch).toHaveLength(2);
  });

  it('may jump: what is overdue goes', () => {
    const batcher = new DynamicBatcher<NamedRequest>(batching({ maxDelayUs: 100 }));
    batcher.add(queued('A'), 0);
    expect(batcher.next(1e12).batch).toHaveLength(1);
    expect(batcher.next(1e12)).toEqual({ batch: null, rejected: [], wakeAtUs: null });
  });
});

describe('where nothing will come any more', () => {
  it('nothing waits for others, and batches are as large as they may be', () => {
    const config = batching({ preferred: [4], maxDelayUs: Number.POSITIVE_INFINITY });
    const batcher = new DynamicBatcher<NamedRequest>(config);
    const requests = Array.from('ABCDEFGHIJ', (name) => queued(name));
    for (const request of requests) batcher.add(request, 0);
    const names = () =>
      batcher
        .next(0, { isDraining: true })
        .batch?.map(({ name }) => name)
        .join('') ?? null;
    expect([names(), names(), names()]).toEqual(['ABCDEFGH', 'IJ', null]);
  });

  it('whoever has expired is rejected all the same', () => {
    const levels = oneLevel({ timeoutUs: 10, maxQueueSize: 1 });
    const batcher = new DynamicBatcher<NamedRequest>(batching({ maxDelayUs: 100, levels }));
    const [a, b] = [queued('A'), queued('B')];
    batcher.add(a, 0);
    batcher.add(b, 10);
    expect(batcher.next(11, { isDraining: true })).toEqual({ batch: [b], rejected: [a], wakeAtUs: null });
  });
});
