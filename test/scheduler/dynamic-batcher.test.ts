import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hardBatcher, immediateBatcher, softBatcher } from '../../scheduler/batcher-presets.js';
import { type BatcherConfig, DynamicBatcher, type QueuedRequest } from '../../scheduler/dynamic-batcher.js';
import { NO_QUEUE_POLICY, type QueuePolicy } from '../../scheduler/queue-policy.js';
import { ReplyOrder } from '../../scheduler/reply-order.js';
import { NaiveBatcher } from './naive-batcher.js';

interface Request extends QueuedRequest {
  id: string;
}

const config = (fields: Partial<BatcherConfig>): BatcherConfig => ({
  maxBatchSize: 8,
  preferred: [],
  maxDelayUs: 0,
  levels: [NO_QUEUE_POLICY],
  defaultLevel: 1,
  ...fields,
});
const request = (id: string, rows = 1, fields: Partial<QueuedRequest> = {}): Request => ({
  id,
  rows,
  fit: '',
  priority: 0,
  timeoutUs: 0,
  ...fields,
});
const ids = (batch: Request[] | null) => batch?.map(({ id }) => id).join('') ?? null;

/** Requests in letters, rows behind each: 'a2 b1 c3'; all come at time 0. */
function filled(fields: Partial<BatcherConfig>, waiting: string): DynamicBatcher<Request> {
  const batcher = new DynamicBatcher<Request>(config(fields));
  for (const one of waiting.split(' ')) batcher.add(request(one[0]!, Number(one.slice(1))), 0);
  return batcher;
}

describe('which batch goes', () => {
  // The batch at time 0, and when to ask again; then the batch once the delay of 100 is over.
  it.each([
    // preferred, waiting          now      again   late
    [[4, 8], 'a2 b1', null, 100, 'ab'],
    [[4, 8], 'a2 b2', 'ab', null, null],
    [[4, 8], 'a2 b1 c1 d3', 'abc', null, 'd'],
    [[4, 8], 'a4 b4', 'ab', null, null],
    [[4, 6], 'a3 b4 c1', 'a', null, 'bc'], // passes 6: what is pending goes
    [[6], 'a3 b2 c3', 'ab', null, 'c'],
    [[4], 'a3 b3', 'a', null, 'b'],
    [[4], 'a5', 'a', null, null],
    [[], 'a1 b1', 'ab', null, null], // no preferred size: nothing is waited for
    [[8], 'a8 b1', 'a', null, 'b'],
  ] as const)('preferred %j, waiting %s', (preferred, waiting, now, again, late) => {
    const batcher = filled({ preferred, maxDelayUs: 100 }, waiting);
    const first = batcher.next(0);
    expect([ids(first.batch), first.wakeAtUs]).toEqual([now, again]);
    expect(ids(batcher.next(100).batch)).toBe(late);
  });

  it('is everything up to maxBatchSize once the oldest is late', () => {
    const batcher = filled({ preferred: [4], maxDelayUs: 100 }, 'a3 b3 c1 d3');
    expect(ids(batcher.next(100).batch)).toBe('abc');
  });

  it('is of one fit', () => {
    const batcher = new DynamicBatcher<Request>(config({ preferred: [8], maxDelayUs: 100 }));
    for (const [id, fit] of ['ax', 'bx', 'cy', 'dx'].map((text) => [...text])) {
      batcher.add(request(id!, 1, { fit: fit! }), 0);
    }
    expect(ids(batcher.next(0).batch)).toBe('ab');
    expect(ids(batcher.next(0).batch)).toBe('c');
    expect(ids(batcher.next(0).batch)).toBeNull();
  });

  it('takes higher levels first', () => {
    const batcher = new DynamicBatcher<Request>(
      config({ levels: [NO_QUEUE_POLICY, NO_QUEUE_POLICY], defaultLevel: 2 }),
    );
    for (const [id, priority] of [
      ['a', 0],
      ['b', 1],
      ['c', 2],
      ['d', 1],
      ['e', 7],
    ] as const) {
      batcher.add(request(id, 1, { priority }), 0);
    }
    expect(ids(batcher.next(0).batch)).toBe('bdace');
  });

  it('is one request where the model takes no batches', () => {
    const batcher = filled({ maxBatchSize: 0 }, 'a1 b1');
    expect([ids(batcher.next(0).batch), ids(batcher.next(0).batch)]).toEqual(['a', 'b']);
  });

  it('is whatever waits where nothing will come any more', () => {
    const batcher = filled({ ...hardBatcher(8) }, 'a1 b1');
    expect(batcher.next(1e9)).toEqual({ batch: null, rejected: [], wakeAtUs: null });
    expect(ids(batcher.next(1e9, { isDraining: true }).batch)).toBe('ab');
  });
});

describe('queue policies', () => {
  const policy = (fields: Partial<QueuePolicy>) => [{ ...NO_QUEUE_POLICY, ...fields }];

  it('reject who has waited too long', () => {
    const levels = policy({ defaultTimeoutUs: 50 });
    const batcher = filled({ ...hardBatcher(8), levels }, 'a1 b1');
    expect(batcher.next(49)).toEqual({ batch: null, rejected: [], wakeAtUs: 50 });
    expect(batcher.next(50).rejected.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(batcher.size).toBe(0);
  });

  it('or put them behind the others of their level', () => {
    const levels = policy({ defaultTimeoutUs: 50, timeoutAction: 'delay' });
    const batcher = filled({ ...hardBatcher(3), levels }, 'a1 b1');
    expect(batcher.next(60).rejected).toEqual([]);
    batcher.add(request('c'), 60);
    expect(ids(batcher.next(60).batch)).toBe('cab');
  });

  it.each([
    [false, 10, 0, 50],
    [true, 10, 0, 10],
    [true, 90, 0, 50], // longer than the default: it may only shorten
    [true, 0, 0, 50],
  ])('allow a time of its own: %s, %i', (allowTimeoutOverride, timeoutUs, _, expected) => {
    const levels = policy({ defaultTimeoutUs: 50, allowTimeoutOverride });
    const batcher = new DynamicBatcher<Request>(config({ ...hardBatcher(8), levels }));
    batcher.add(request('a', 1, { timeoutUs }), 0);
    expect(batcher.next(0).wakeAtUs).toBe(expected);
  });

  it('take so many and no more, in each level', () => {
    const levels = [...policy({ maxQueueSize: 1 }), ...policy({ maxQueueSize: 2 })];
    const batcher = new DynamicBatcher<Request>(config({ levels, defaultLevel: 2 }));
    const add = (priority: number) => batcher.add(request('a', 1, { priority }), 0);
    expect([add(1), add(1), add(2), add(0), add(2)]).toEqual([null, 'queueFull', null, null, 'queueFull']);
  });
});

describe('presets', () => {
  it('are soft and hard batchers, and one that waits for nothing', () => {
    expect(ids(filled(immediateBatcher(4), 'a3 b3').next(0).batch)).toBe('a');
    const soft = filled(softBatcher(4, 100), 'a3');
    expect([ids(soft.next(99).batch), ids(soft.next(100).batch)]).toEqual([null, 'a']);
    const hard = filled(hardBatcher(4), 'a3');
    expect(ids(hard.next(1e12).batch)).toBeNull();
    hard.add(request('b'), 1e12);
    expect(ids(hard.next(1e12).batch)).toBe('ab');
  });
});

const anyPolicy = fc.record({
  timeoutAction: fc.constantFrom('reject' as const, 'delay' as const),
  defaultTimeoutUs: fc.constantFrom(0, 0, 30, 80),
  allowTimeoutOverride: fc.boolean(),
  maxQueueSize: fc.constantFrom(0, 0, 3),
});
const anyConfig = fc
  .record({
    maxBatchSize: fc.integer({ min: 1, max: 8 }),
    shares: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
    maxDelayUs: fc.constantFrom(0, 20, 100, Number.POSITIVE_INFINITY),
    levels: fc.array(anyPolicy, { minLength: 1, maxLength: 3 }),
    level: fc.nat(2),
  })
  .map(({ maxBatchSize, shares, maxDelayUs, levels, level }) => ({
    maxBatchSize,
    preferred: shares.map((share) => 1 + Math.floor(share * (maxBatchSize - 1))),
    maxDelayUs,
    levels,
    defaultLevel: 1 + (level % levels.length),
  }));
const anyStep = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      fit: fc.constantFrom('x', 'x', 'x', 'y'),
      priority: fc.nat(4),
      timeoutUs: fc.constantFrom(0, 0, 10, 200),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), which: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), us: fc.nat(60) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      hasRoom: fc.boolean(),
      isDraining: fc.constantFrom(false, false, false, true),
    }),
  },
);

describe('histories', () => {
  it('are those of the rules read one by one, and nothing is lost or given twice', () => {
    fc.assert(
      fc.property(anyConfig, fc.array(anyStep, { maxLength: 80 }), (fields, steps) => {
        const batcher = new DynamicBatcher<Request>(fields);
        const naive = new NaiveBatcher<Request>(fields);
        const inside = new Set<Request>();
        let nowUs = 0;
        for (const step of steps) {
          if (step.kind === 'pass') nowUs += step.us;
          if (step.kind === 'add') {
            const rows = 1 + Math.floor(step.share * (fields.maxBatchSize - 1));
            const { fit, priority, timeoutUs } = step;
            const one = request(`${inside.size}`, rows, { fit, priority, timeoutUs });
            const refused = batcher.add(one, nowUs);
            expect(refused).toBe(naive.add(one, nowUs));
            if (refused === null) inside.add(one);
          }
          if (step.kind === 'remove') {
            const one = [...inside][step.which];
            if (one === undefined) continue;
            expect(batcher.remove(one)).toBe(true);
            expect(naive.remove(one)).toBe(true);
            inside.delete(one);
          }
          if (step.kind === 'ask') {
            const next = batcher.next(nowUs, step);
            const expected = naive.next(nowUs, step);
            expect(next.batch).toEqual(expected.batch);
            expect(new Set(next.rejected)).toEqual(new Set(expected.rejected));
            expect(next.wakeAtUs).toBe(expected.wakeAtUs);
            const out = [...(next.batch ?? []), ...next.rejected];
            for (const one of out) expect(inside.delete(one)).toBe(true);
            const rows = (next.batch ?? []).reduce((sum, one) => sum + one.rows, 0);
            expect(rows).toBeLessThanOrEqual(fields.maxBatchSize);
          }
          expect(batcher.size).toBe(inside.size);
        }
      }),
      { numRuns: 1500 },
    );
  });

  it('stay cheap however many requests wait', () => {
    const levels = [{ ...NO_QUEUE_POLICY, defaultTimeoutUs: 1e9 }];
    const batcher = new DynamicBatcher<Request>(
      config({ maxBatchSize: 4, preferred: [4], maxDelayUs: 10, levels }),
    );
    const requests = Array.from({ length: 100_000 }, (_, i) => request(`${i}`));
    for (const one of requests) batcher.add(one, 0);
    let looked = 0;
    const counted = new Proxy(requests[0]!, {
      get: (target, key) => {
        looked++;
        return Reflect.get(target, key);
      },
    });
    batcher.remove(requests[0]!);
    batcher.add(counted, 0); // the last of all
    for (let i = 0; i < 1000; i++) batcher.next(0);
    for (let i = 50_000; i < 60_000; i++) batcher.remove(requests[i]!);
    expect(looked).toBeLessThan(10);
    expect(batcher.size).toBe(100_000 - 4000 - 10_000);
  });
});

it('replies keep the order of requests', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }), (order) => {
      const replies = new ReplyOrder<number, string>();
      for (const one of [0, 1, 2, 3, 4, 5]) replies.begin(one);
      expect(order.flatMap((one) => replies.settle(one, `${one}`)).join('')).toBe('012345');
    }),
  );
});
