import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatcherConfig, DynamicBatcher } from '../../../scheduler/tensors/dynamic-batcher.js';
import type { QueuePolicy } from '../../../scheduler/tensors/queue-policy.js';
import { type NamedRequest, queued } from '../../support/queued-requests.js';
import { draws } from '../../support/scale.js';
import { SlowBatcher } from './oracle/slow-batcher.js';

const RUNS = draws(400);

const policy: fc.Arbitrary<QueuePolicy> = fc.record({
  timeoutAction: fc.constantFrom('REJECT', 'DELAY'),
  timeoutUs: fc.constantFrom(0, 0, 3, 12, 40),
  allowTimeoutOverride: fc.boolean(),
  maxQueueSize: fc.constantFrom(0, 0, 0, 3, 6),
});

/** Few rows, short times and few levels, so that nearly every history meets every rule. */
const config: fc.Arbitrary<BatcherConfig> = fc
  .record({
    maxBatchSize: fc.integer({ min: 1, max: 12 }),
    oneByOne: fc.integer({ min: 0, max: 9 }).map((value) => value === 0),
    preferred: fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { maxLength: 3 }),
    maxDelayUs: fc.constantFrom(0, 1, 5, 20, 20, 100, Infinity),
    levels: fc.record({
      count: fc.constantFrom(0, 0, 1, 3),
      default: fc.integer({ min: 1, max: 3 }),
      defaultPolicy: policy,
      policies: fc
        .dictionary(fc.constantFrom('1', '2', '3'), policy, { maxKeys: 2 })
        .map((policies) => new Map(Object.entries(policies).map(([level, one]) => [Number(level), one]))),
    }),
  })
  .map(({ preferred, levels, ...more }) => ({
    ...more,
    preferred: preferred.filter((size) => size <= more.maxBatchSize),
    levels: { ...levels, default: Math.min(levels.default, levels.count) },
  }));

type Step =
  | { kind: 'add'; rows: number; priority: number; timeoutUs: number; fit: string }
  | { kind: 'remove'; which: number }
  | { kind: 'next' | 'expire' | 'drain' | 'putBack' }
  | { kind: 'pass'; us: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      rows: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 14 })),
      priority: fc.integer({ min: 0, max: 4 }),
      timeoutUs: fc.constantFrom(0, 0, 2, 9, 60),
      fit: fc.constantFrom('', '', '', '', '', 'x'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), which: fc.nat(20) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('next' as const, 'next', 'next', 'expire', 'expire', 'drain', 'putBack'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      us: fc.oneof(
        fc.integer({ min: 0, max: 6 }),
        fc.integer({ min: 0, max: 50 }),
        fc.constantFrom(1e9, -30),
      ),
    }),
  },
);

/** Fast and slow side by side, and where each request went. */
class Pair {
  readonly fast: DynamicBatcher<NamedRequest>;
  readonly slow: SlowBatcher;
  readonly ran: NamedRequest[][] = [];
  readonly #gone = new Set<NamedRequest>();
  readonly #added: NamedRequest[] = [];
  now = 0;

  constructor(readonly config: BatcherConfig) {
    this.fast = new DynamicBatcher(config);
    this.slow = new SlowBatcher(config);
  }

  apply(step: Step): void {
    if (step.kind === 'pass') this.now += step.us;
    else if (step.kind === 'add') this.#add(step);
    else if (step.kind === 'remove') this.#remove(step.which);
    else if (step.kind === 'expire') this.expire();
    else if (step.kind === 'putBack') this.putBack();
    else this.next({ isDraining: step.kind === 'drain' });
    expect(this.fast.size).toBe(this.slow.waiting.length);
    const rows = this.slow.waiting.reduce((sum, { request }) => sum + Math.max(1, request.rows), 0);
    expect(this.fast.rows).toBe(rows);
  }

  /** @returns the batch, or null */
  next({ isDraining = false } = {}): NamedRequest[] | null {
    const { batch, rejected, wakeAtUs } = this.fast.next(this.now, { isDraining });
    expect(rejected).toEqual(this.slow.expire(this.now));
    expect(batch).toEqual(this.slow.take(this.now, isDraining));
    expect(wakeAtUs).toBe(this.slow.wake(batch === null));
    for (const request of [...rejected, ...(batch ?? [])]) this.#leave(request);
    if (batch !== null) this.#look(batch);
    return batch;
  }

  /** The latest batch was not begun with after all. */
  putBack(): void {
    const batch = this.ran.pop() ?? [];
    const since = this.slow.putBack(batch);
    this.fast.putBack(batch.map((request, i) => ({ request, enqueuedUs: since[i]! })));
    for (const request of batch) this.#gone.delete(request);
  }

  expire(): void {
    const { batch, rejected, wakeAtUs } = this.fast.next(this.now, { hasRoom: false });
    expect(batch).toBeNull();
    expect(rejected).toEqual(this.slow.expire(this.now));
    expect(wakeAtUs).toBe(this.slow.wake(false));
    for (const request of rejected) this.#leave(request);
  }

  /** Nothing more comes: everything that came goes. */
  end(): void {
    while (this.next({ isDraining: true }) !== null);
    expect(this.#gone.size).toBe(this.#added.length);
    expect([this.fast.size, this.fast.rows]).toEqual([0, 0]);
  }

  #add({ rows, priority, timeoutUs, fit }: Step & { kind: 'add' }): void {
    const request = queued(`r${this.#added.length}`, rows, { priority, timeoutUs, fit });
    const refusal = this.fast.add(request, this.now);
    expect(refusal).toBe(this.slow.add(request, this.now) ? null : 'queueFull');
    if (refusal === null) this.#added.push(request);
  }

  #remove(which: number): void {
    const request = this.#added.at(-1 - which);
    if (request === undefined) return;
    const wasThere = this.fast.remove(request);
    expect(wasThere).toBe(this.slow.remove(request));
    if (wasThere) this.#leave(request);
  }

  #leave(request: NamedRequest): void {
    expect(this.#gone.has(request)).toBe(false);
    this.#gone.add(request);
  }

  #look(batch: readonly NamedRequest[]): void {
    this.ran.push([...batch]);
    const rows = batch.reduce((sum, request) => sum + Math.max(1, request.rows), 0);
    if (batch.length > 1) expect(rows).toBeLessThanOrEqual(this.config.maxBatchSize);
    expect(new Set(batch.map(({ fit }) => fit)).size).toBe(1);
  }
}

describe('random histories of the dynamic batcher', () => {
  it('go as the rules say, written down once more in plain code', () => {
    fc.assert(
      fc.property(config, fc.array(step, { maxLength: 60 }), (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) pair.apply(one);
        pair.end();
      }),
      { numRuns: RUNS },
    );
  });

  it('go so as well where an instance is always free, and asks after each change', () => {
    // Odd sizes and several preferred ones, so that many walks find nothing.
    const waiting = config.map((chosen) => ({
      ...chosen,
      oneByOne: false,
      maxBatchSize: chosen.maxBatchSize + 8,
      preferred: [...chosen.preferred, chosen.maxBatchSize + 6],
      maxDelayUs: Math.max(chosen.maxDelayUs, 60),
    }));
    fc.assert(
      fc.property(waiting, fc.array(step, { minLength: 5, maxLength: 40 }), (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) {
          const isLarge = one.kind === 'add' && one.rows > 6;
          pair.apply(isLarge ? { ...one, rows: (one.rows % 4) + 1 } : one);
          while (pair.next() !== null);
        }
        pair.end();
      }),
      { numRuns: RUNS },
    );
  });

  it('wake neither too late nor for nothing: until then nothing goes, and then something does', () => {
    fc.assert(
      fc.property(config, fc.array(step, { maxLength: 30 }), (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) pair.apply(one);
        while (pair.next() !== null);
        const wakeAtUs = pair.slow.wake(true);
        if (wakeAtUs === null) return;
        const { length } = pair.slow.waiting;
        for (; pair.now < wakeAtUs - 1; pair.now++) {
          expect(pair.next()).toBeNull();
          expect(pair.slow.waiting).toHaveLength(length);
        }
        const isDelayed = () => pair.slow.waiting.filter((one) => one.isDelayed).length;
        const before = isDelayed();
        pair.now = wakeAtUs;
        const batch = pair.next();
        expect(batch !== null || pair.slow.waiting.length < length || isDelayed() > before).toBe(true);
      }),
      { numRuns: RUNS / 8 },
    );
  });

  it('keep the order of arrival within a level where nobody expires', () => {
    const patient = config.map((chosen) => ({
      ...chosen,
      levels: {
        ...chosen.levels,
        policies: new Map(),
        defaultPolicy: { ...chosen.levels.defaultPolicy, timeoutUs: 0, allowTimeoutOverride: false },
      },
    }));
    fc.assert(
      fc.property(patient, fc.array(step, { maxLength: 60 }), (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) pair.apply(one);
        const { count, default: standard } = chosen.levels;
        for (let level = 0; level <= count; level++) {
          const numbers = pair.ran
            .flat()
            .filter(({ priority }) => {
              if (count === 0) return true;
              return (priority >= 1 && priority <= count ? priority : standard) === level;
            })
            .map(({ name }) => Number(name.slice(1)));
          expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
        }
      }),
      { numRuns: RUNS / 8 },
    );
  });

  it('never leave anybody longer than the delay while an instance is free', () => {
    const busy = fc.record({
      instances: fc.integer({ min: 1, max: 3 }),
      computeUs: fc.integer({ min: 1, max: 30 }),
      gaps: fc.array(
        fc.record({ gapUs: fc.integer({ min: 0, max: 12 }), rows: fc.integer({ min: 1, max: 6 }) }),
        {
          minLength: 1,
          maxLength: 40,
        },
      ),
    });
    fc.assert(
      fc.property(config, busy, (chosen, { instances, computeUs, gaps }) => {
        const pair = new Pair({ ...chosen, maxDelayUs: Math.min(chosen.maxDelayUs, 25) });
        const busyUntil: number[] = [];
        let sent = 0;
        let nextArrival = gaps[0]!.gapUs;
        for (; pair.now < 3000; pair.now++) {
          while (busyUntil.length > 0 && busyUntil[0]! <= pair.now) busyUntil.shift();
          for (; sent < gaps.length && nextArrival <= pair.now; ) {
            pair.apply({ kind: 'add', priority: sent % 4, timeoutUs: 0, fit: '', rows: gaps[sent]!.rows });
            sent++;
            nextArrival += gaps[sent]?.gapUs ?? 0;
          }
          while (busyUntil.length < instances && pair.next() !== null) busyUntil.push(pair.now + computeUs);
          if (busyUntil.length === instances) pair.expire();
          else
            for (const { since } of pair.slow.waiting)
              expect(pair.now - since).toBeLessThan(pair.config.maxDelayUs);
        }
        expect(pair.fast.size).toBe(0);
        pair.end();
      }),
      { numRuns: draws(12) },
    );
  });
});
