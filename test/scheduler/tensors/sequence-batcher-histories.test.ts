import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type SequenceBatch,
  SequenceBatcher,
  type SequenceBatcherConfig,
} from '../../../scheduler/tensors/sequence-batcher.js';
import { draws } from '../../support/scale.js';
import type { NamedStep } from '../../support/sequence-timeline.js';
import { type SlowBatch, SlowSequences } from './oracle/slow-sequences.js';

const RUNS = draws(800);

/** Few slots, ids and microseconds, so that nearly every history meets every rule. */
const config: fc.Arbitrary<SequenceBatcherConfig> = fc
  .record({
    instances: fc.integer({ min: 1, max: 3 }),
    slots: fc.integer({ min: 1, max: 4 }),
    maxBatchSize: fc.integer({ min: 1, max: 4 }),
    maxIdleUs: fc.constantFrom(1, 10, 40, 1000),
    isDirect: fc.boolean(),
    minimumUtilization: fc.constantFrom(0, 0, 0.4, 1),
    maxDelayUs: fc.constantFrom(0, 5, 20),
    preferred: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }),
  })
  .map(
    ({ instances, slots, maxBatchSize, maxIdleUs, isDirect, minimumUtilization, maxDelayUs, preferred }) => ({
      instances,
      maxIdleUs,
      slots: isDirect ? maxBatchSize : slots,
      strategy: isDirect
        ? { kind: 'direct', maxBatchSize, minimumUtilization, maxDelayUs }
        : {
            kind: 'oldest',
            maxBatchSize,
            maxDelayUs,
            preferred: preferred.filter((size) => size <= maxBatchSize),
          },
    }),
  );

type Step =
  | { kind: 'add'; id: string; start: boolean; end: boolean; timeoutUs: number; fit: string }
  | { kind: 'remove' | 'settle'; which: number; again: boolean; isLast: boolean }
  | { kind: 'next'; free: number; isDraining: boolean }
  | { kind: 'note'; which: number; isRunning: boolean }
  | { kind: 'pass'; us: number };

const rarely = fc.integer({ min: 0, max: 9 }).map((value) => value === 0);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      id: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      start: fc.integer({ min: 0, max: 2 }).map((value) => value === 0),
      end: fc.integer({ min: 0, max: 4 }).map((value) => value === 0),
      timeoutUs: fc.constantFrom(0, 0, 0, 6, 25),
      fit: fc.constantFrom('', '', '', '', 'x'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('settle' as const, 'settle', 'settle', 'remove'),
      which: fc.nat(12),
      again: rarely,
      isLast: rarely,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('next' as const), free: fc.nat(7), isDraining: rarely }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('note' as const), which: fc.nat(2), isRunning: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      us: fc.oneof(
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 0, max: 60 }),
        fc.constantFrom(1e9, -20),
      ),
    }),
  },
);

interface Running {
  fast: SequenceBatch<NamedStep>;
  slow: SlowBatch;
}

/** Fast and slow side by side, and what became of each request. */
class Pair {
  readonly fast: SequenceBatcher<NamedStep>;
  readonly slow: SlowSequences;
  readonly added: NamedStep[] = [];
  /** Requests that are with an instance, done, or refused. */
  readonly gone = new Set<NamedStep>();
  /** In the order in which they ran: instance, sequence and name. */
  readonly ran: { instance: number; sequence: number; name: string }[] = [];
  readonly running = new Map<number, Running>();
  readonly isUp: boolean[];
  now = 0;

  constructor(readonly config: SequenceBatcherConfig) {
    this.fast = new SequenceBatcher(config);
    this.slow = new SlowSequences(config);
    this.isUp = Array(config.instances).fill(false);
    for (const i of this.isUp.keys()) this.note(i, true);
  }

  apply(one: Step): void {
    if (one.kind === 'pass') this.now += one.us;
    else if (one.kind === 'add') this.#add(one);
    else if (one.kind === 'note') this.note(one.which % this.config.instances, one.isRunning);
    else if (one.kind === 'next')
      this.next(
        this.free().filter((i) => ((one.free >> i) & 1) === 1),
        one.isDraining,
      );
    else if (one.kind === 'remove') this.#remove(one.which);
    else this.settle(one.which, one.again, one.isLast);
    expect(this.fast.backlog).toBe(this.slow.backlog.length);
    expect(this.fast.live).toBe(this.slow.sessions.filter(({ place }) => place !== null).length);
  }

  free(): number[] {
    return [...this.isUp.keys()].filter((i) => this.isUp[i] && !this.running.has(i));
  }

  next(free: readonly number[], isDraining = false): boolean {
    const { batch, refused, ended, wakeAtUs } = this.fast.next(this.now, free, isDraining);
    const slow = this.slow.take(this.now, free, isDraining);
    expect(batch && this.#text(batch)).toEqual(slow?.text ?? null);
    expect(refused.map(({ request, reason }) => `${request.name} ${reason}`)).toEqual(
      this.slow.refused.splice(0),
    );
    // In which order an instance forgets what is over does not matter.
    const over = ended.map(({ instance, sequence }) => `#${instance} ${sequence}`);
    expect(over.toSorted()).toEqual(this.slow.ended.splice(0).toSorted());
    if (batch === null) expect(wakeAtUs).toBe(this.slow.wake(free));
    for (const { request } of refused) this.#leave(request);
    if (batch === null || slow === null) return false;
    expect(this.running.has(batch.instance)).toBe(false);
    this.running.set(batch.instance, { fast: batch, slow });
    for (const { request, sequence } of batch.rows) {
      this.gone.add(request);
      this.ran.push({ instance: batch.instance, sequence, name: request.name });
    }
    return true;
  }

  settle(which: number, again: boolean, isLast: boolean): void {
    const found = [...this.running][which % Math.max(1, this.running.size)];
    if (found === undefined) return;
    const [instance, { fast, slow }] = found;
    this.running.delete(instance);
    const back = again ? fast.rows[which % fast.rows.length]!.request : null;
    if (back !== null) {
      this.fast.putAgain(back);
      this.slow.putAgain(back);
      this.gone.delete(back);
    }
    this.fast.settle(fast, this.now, { isLast });
    this.slow.settle(slow, this.now, isLast);
  }

  note(instance: number, isRunning: boolean): void {
    if (!isRunning && this.running.has(instance)) {
      this.settle([...this.running.keys()].indexOf(instance), false, false);
    }
    this.isUp[instance] = isRunning;
    this.fast.noteInstance(instance, isRunning, this.now);
    this.slow.note(instance, isRunning, this.now);
  }

  /** Nothing more comes: everything that came goes, whatever is idle. */
  end(): void {
    for (const i of this.isUp.keys()) if (!this.isUp[i]) this.note(i, true);
    do {
      while (this.running.size > 0) this.settle(0, false, false);
      while (this.next(this.free(), true));
    } while (this.running.size > 0);
    expect([...this.added].filter((request) => !this.gone.has(request))).toEqual([]);
    expect(this.fast.backlog).toBe(0);
  }

  #text({ instance, slots, rows }: SequenceBatch<NamedStep>): string {
    const texts = Array<string>(slots).fill('-');
    for (const { slot, request, sequence, start, end } of rows) {
      expect(texts[slot]).toBe('-');
      texts[slot] = `${request.name}:${sequence}${start ? '+' : ''}${end ? '-' : ''}`;
    }
    return `#${instance} ${texts.join(' ')}`;
  }

  #add({ id, start, end, timeoutUs, fit }: Step & { kind: 'add' }): void {
    const request = { name: `${id}${this.added.length}`, sequence: { key: id, start, end }, timeoutUs, fit };
    const refusal = this.fast.add(request, this.now);
    expect(refusal).toBe(this.slow.add(request, this.now));
    if (refusal === null) this.added.push(request);
  }

  #remove(which: number): void {
    const request = this.added.at(-1 - which);
    if (request === undefined) return;
    const waited = this.fast.remove(request, this.now);
    expect(waited).toBe(this.slow.remove(request, this.now));
    if (waited) this.#leave(request);
  }

  #leave(request: NamedStep): void {
    expect(this.gone.has(request)).toBe(false);
    this.gone.add(request);
  }
}

describe('random histories of the sequence batcher', () => {
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

  it('never bring a sequence to two instances, and keep the order of its requests', () => {
    const calm = fc
      .array(step, { minLength: 20, maxLength: 60 })
      .map((steps) =>
        steps
          .filter((one) => one.kind !== 'note')
          .map((one) => (one.kind === 'settle' ? { ...one, again: false, isLast: false } : one)),
      );
    fc.assert(
      fc.property(config, calm, (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) pair.apply(one);
        pair.end();
        const bySequence = new Map<number, typeof pair.ran>();
        for (const row of pair.ran)
          bySequence.set(row.sequence, [...(bySequence.get(row.sequence) ?? []), row]);
        for (const rows of bySequence.values()) {
          expect(new Set(rows.map(({ instance }) => instance)).size).toBe(1);
          const numbers = rows.map(({ name }) => Number(name.slice(1)));
          expect(numbers).toEqual([...numbers].sort((one, other) => one - other));
        }
      }),
      { numRuns: RUNS / 4 },
    );
  });

  it('wake neither too late nor for nothing', () => {
    fc.assert(
      fc.property(config, fc.array(step, { maxLength: 30 }), (chosen, steps) => {
        const pair = new Pair(chosen);
        for (const one of steps) pair.apply(one);
        while (pair.next(pair.free()));
        const wakeAtUs = pair.slow.wake(pair.free());
        if (wakeAtUs === null || wakeAtUs > pair.now + 200) return;
        const seen = () => [pair.gone.size, pair.fast.live, pair.fast.backlog, pair.running.size].join();
        const before = seen();
        for (; pair.now < wakeAtUs - 1; pair.now++) {
          expect(pair.next(pair.free())).toBe(false);
          expect(seen()).toBe(before);
        }
        pair.now = wakeAtUs;
        pair.next(pair.free());
        expect(seen()).not.toBe(before);
      }),
      { numRuns: RUNS / 4 },
    );
  });
});
