import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { BatchEntry } from '../../../../host/batch/batch-duties.js';
import { serviceBatcher } from '../../../../scheduler/tensors/batcher-presets.js';
import { type ServiceBatch, ServiceFormer } from '../../../../src/library/service/service-former.js';

interface Entry extends BatchEntry {
  number: number;
}

interface ServiceLimits {
  maxBatchSize: number;
  timeoutUs: number;
  maxQueueSize: number;
}

const batchingOf = ({ timeoutUs, ...limits }: ServiceLimits) =>
  serviceBatcher({ ...limits, timeoutSeconds: timeoutUs / 1e6 });

/** The service as it is written down, slowly: a buffer, who waits for a place in it, and when its first element came. */
class Naive {
  readonly #limits: ServiceLimits;
  #buffer: number[] = [];
  #line: number[] = [];
  #sinceUs = 0;
  onTheirWay = 0;
  constructor(limits: ServiceLimits) {
    this.#limits = limits;
  }
  add(number: number, nowUs: number): void {
    this.#line.push(number);
    this.#fill(nowUs);
  }
  batches(nowUs: number): number[][] {
    const batches: number[][] = [];
    for (;;) {
      this.#fill(nowUs);
      const { maxBatchSize, maxQueueSize, timeoutUs } = this.#limits;
      const isDue = this.#buffer.length === maxBatchSize || nowUs - this.#sinceUs >= timeoutUs;
      if (this.#buffer.length === 0 || !isDue || this.onTheirWay === maxQueueSize) return batches;
      this.onTheirWay++;
      batches.push(this.#buffer.splice(0));
    }
  }
  #fill(nowUs: number): void {
    while (this.#line.length > 0 && this.#buffer.length < this.#limits.maxBatchSize) {
      if (this.#buffer.length === 0) this.#sinceUs = nowUs;
      this.#buffer.push(this.#line.shift()!);
    }
  }
}

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('come' as const), count: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), count: fc.integer({ min: 1, max: 80 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('over' as const), count: fc.constant(1) }) },
);
const limits = fc.record({
  maxBatchSize: fc.integer({ min: 1, max: 5 }),
  timeoutUs: fc.constant(100),
  maxQueueSize: fc.integer({ min: 1, max: 3 }),
});

it('forms the batches of the service as it is written down, whatever comes', () => {
  fc.assert(
    fc.property(limits, fc.array(event, { maxLength: 60 }), (given, events) => {
      const formed: number[][] = [];
      const former: ServiceFormer<Entry> = new ServiceFormer(
        batchingOf(given),
        (batch: ServiceBatch<Entry>) => {
          formed.push(batch.entries.map(({ number }) => number));
          former.noteReady(batch);
        },
      );
      const naive = new Naive(given);
      let nowUs = 0;
      let number = 0;
      let sent = 0;
      const form = () => {
        const seen = formed.length;
        let { batch, wakeAtUs } = former.form(nowUs, [0], false);
        for (; batch !== null; { batch, wakeAtUs } = former.form(nowUs, [0], false)) sent++;
        expect(formed.slice(seen)).toEqual(naive.batches(nowUs));
        expect(sent).toBe(formed.length);
        return wakeAtUs;
      };
      for (const { kind, count } of events) {
        if (kind === 'come') {
          for (let i = 0; i < count; i++) {
            const entry = { number: number++, hasStarted: false, release: null, fail: () => {} };
            former.add(entry, nowUs);
            naive.add(entry.number, nowUs);
          }
        } else if (kind === 'over' && naive.onTheirWay > 0) {
          naive.onTheirWay--;
          former.noteOver();
        } else if (kind === 'pass') {
          const untilUs = nowUs + count;
          for (let wakeUs = form(); wakeUs !== null && wakeUs <= untilUs; wakeUs = form()) nowUs = wakeUs;
          nowUs = untilUs;
        }
        form();
      }
    }),
  );
});

it('forgets who has left, in the buffer and in the line', () => {
  const formed: number[][] = [];
  const former: ServiceFormer<Entry> = new ServiceFormer(
    batchingOf({ maxBatchSize: 2, timeoutUs: 100, maxQueueSize: 1 }),
    ({ entries }) => formed.push(entries.map(({ number }) => number)),
  );
  const entries = Array.from({ length: 6 }, (_, number) => ({
    number,
    hasStarted: false,
    release: null,
    fail: () => {},
  }));
  for (const entry of entries) former.add(entry, 0);
  for (const gone of [1, 2, 4]) former.remove(entries[gone]!);
  former.form(0, [0], false);
  former.noteOver();
  former.form(100, [0], true);
  expect(formed).toEqual([[0, 3], [5]]);
});
