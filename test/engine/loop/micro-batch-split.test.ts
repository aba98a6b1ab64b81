import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MIN_MICRO_BATCH_SIZE } from '../../../callbacks/options/optional-params.js';
import { MicroBatchSplit } from '../../../engine/loop/micro-batch-split.js';

const ALL = Number.POSITIVE_INFINITY;

describe('requests are parted into two micro-batches', () => {
  it.each([
    { what: 'one alone', withCapacity: 1, inFlight: 0, most: ALL },
    { what: 'too few for two halves', withCapacity: 7, inFlight: 0, most: ALL },
    { what: 'just enough for two', withCapacity: 8, inFlight: 0, most: 4 },
    { what: 'the first half of an odd number', withCapacity: 13, inFlight: 0, most: 7 },
    { what: 'the other half', withCapacity: 6, inFlight: 6, most: 6 },
    { what: 'one more came', withCapacity: 7, inFlight: 6, most: 7 },
    { what: 'most of the other half have ended', withCapacity: 20, inFlight: 2, most: 11 },
    { what: 'never fewer than the minimum', withCapacity: 4, inFlight: 1, most: 4 },
    { what: 'too few beside those that run', withCapacity: 3, inFlight: 6, most: 0 },
    { what: 'none beside those that run', withCapacity: 0, inFlight: 6, most: 0 },
  ])('$what: $withCapacity beside $inFlight', ({ withCapacity, inFlight, most }) => {
    expect(new MicroBatchSplit(4).mostRequests(withCapacity, inFlight)).toBe(most);
  });

  it('only from twice the default minimum on', () => {
    expect(new MicroBatchSplit().mostRequests(2 * DEFAULT_MIN_MICRO_BATCH_SIZE - 1, 0)).toBe(ALL);
    expect(new MicroBatchSplit().mostRequests(2 * DEFAULT_MIN_MICRO_BATCH_SIZE, 0)).toBe(
      DEFAULT_MIN_MICRO_BATCH_SIZE,
    );
  });

  it('runs all together after a wait, and parts again afterwards', () => {
    const split = new MicroBatchSplit(4);
    expect(split.mostRequests(3, 6)).toBe(0);
    expect(split.mostRequests(9, 0)).toBe(ALL);
    expect(split.mostRequests(0, 9)).toBe(0);
    expect(split.mostRequests(9, 0)).toBe(5);
  });

  it('whatever comes and goes: whoever can run does so in one of the next two micro-batches that start', () => {
    const history = fc.array(fc.record({ arrive: fc.nat(6), leave: fc.nat(6) }), { maxLength: 40 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), history, (minimum, changes) => {
        const split = new MicroBatchSplit(minimum);
        // Numbers of micro-batches that started since each request could run, in list order; null: it is in flight.
        let waiting: number[] = [];
        let running: number[] = [];
        for (const { arrive, leave } of changes) {
          waiting.push(...new Array<number>(arrive).fill(0));
          const most = split.mostRequests(waiting.length, running.length);
          const started = waiting.splice(0, most);
          if (started.length > 0) waiting = waiting.map((starts) => starts + 1);
          expect(Math.max(0, ...waiting)).toBeLessThan(2);
          // The requests that ran before have ended their step: some leave, the rest go on.
          const landed = running.slice(leave).map(() => 0);
          running = started;
          waiting = [...landed, ...waiting];
        }
      }),
    );
  });
});
