import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MIN_MICRO_BATCH_SIZE } from '../../../callbacks/options/optional-params.js';
import { MicroBatchSplit } from '../../../engine/loop/micro-batch-split.js';
import { draws } from '../../support/scale.js';

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
});

/** Requests that wait or are in flight, as the loop has them: it starts a micro-batch, and the oldest ends when all parts run. */
function runSplit(parts: number, minimum: number, changes: readonly { arrive: number; leave: number }[]) {
  const flying: number[] = [];
  const split = new MicroBatchSplit(minimum, parts, {
    get count() {
      return flying.length;
    },
  });
  // Numbers of micro-batches that started since each request could run, in list order.
  let waiting: number[] = [];
  let longest = 0;
  let mostFlying = 0;
  for (const { arrive, leave } of changes) {
    waiting.push(...new Array<number>(arrive).fill(0));
    const inFlight = flying.reduce((sum, size) => sum + size, 0);
    const started = waiting.splice(0, split.mostRequests(waiting.length, inFlight));
    const isAlone = started.length > 0 && split.runsTogether;
    if (started.length > 0) {
      waiting = waiting.map((starts) => starts + 1);
      flying.push(started.length);
    }
    longest = Math.max(longest, ...waiting);
    mostFlying = Math.max(mostFlying, flying.length);
    if (isAlone || started.length === 0 || flying.length === parts) {
      // Those that have ended their step are in front of all others again.
      const landed = Math.max(0, (flying.shift() ?? 0) - leave);
      waiting = [...new Array<number>(landed).fill(0), ...waiting];
    }
  }
  return { longest, mostFlying };
}

describe('whatever comes and goes', () => {
  const history = fc.array(fc.record({ arrive: fc.nat(6), leave: fc.nat(3) }), { maxLength: 60 });
  it.each([2, 3, 4, 8])('%i parts: whoever can run does so in one of the next that start', (parts) => {
    let most = 0;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), history, (minimum, changes) => {
        const { longest, mostFlying } = runSplit(parts, minimum, changes);
        expect(longest).toBeLessThanOrEqual(parts);
        most = Math.max(most, mostFlying);
      }),
      { numRuns: draws(100) },
    );
    expect(most).toBe(parts);
  });

  it.each([
    { parts: 3, requests: 4, sizes: [2, 1, 1] },
    { parts: 4, requests: 3, sizes: [1, 1, 1] },
    { parts: 3, requests: 12, sizes: [4, 4, 4] },
  ])('$requests requests, $parts parts', ({ parts, requests, sizes }) => {
    const running = { count: 0 };
    const split = new MicroBatchSplit(1, parts, running);
    const found: number[] = [];
    for (let left = requests; left > 0; left -= found.at(-1)!) {
      found.push(Math.min(left, split.mostRequests(left, requests - left)));
      running.count++;
    }
    expect(found).toEqual(sizes);
  });
});
