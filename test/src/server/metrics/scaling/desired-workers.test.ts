import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DesiredWorkers } from '../../../../../src/server/metrics/scaling/desired-workers.js';

const TARGETS = { firstTokenMs: 1_000, betweenTokensMs: 50 };
const counts = fc.integer({ min: 0, max: 500 });
const times = fc.array(fc.double({ min: 0.2, max: 100_000, noNaN: true }), { maxLength: 30 });
const load = fc.record({ workers: counts, running: counts, waiting: counts, ages: times });

function told(first: readonly number[], between: readonly number[]): DesiredWorkers {
  const desired = new DesiredWorkers(TARGETS);
  for (const ms of first) desired.noteFirst(ms, 0);
  for (const ms of between) desired.noteBetween(ms, 0);
  return desired;
}

it('the number is whole, within half and twice what is there, and never less for longer times', () => {
  fc.assert(
    fc.property(
      load,
      times,
      times,
      fc.double({ min: 1, max: 100, noNaN: true }),
      (now, first, between, by) => {
        const found = told(first, between).desired(now, 0);
        expect(Number.isInteger(found)).toBe(true);
        if (now.workers === 0) expect(found).toBe(now.waiting > 0 ? 1 : 0);
        else if (found > 0) {
          expect(found).toBeGreaterThanOrEqual(Math.floor(now.workers / 2));
          expect(found).toBeLessThanOrEqual(2 * now.workers);
        } else expect([now.running + now.waiting, first, between]).toEqual([0, [], []]);
        const longer = (all: number[]) => all.map((ms) => ms * by);
        const slower = told(longer(first), longer(between));
        expect(slower.desired({ ...now, ages: longer(now.ages) }, 0)).toBeGreaterThanOrEqual(found);
      },
    ),
  );
});

it('a tenth of the requests may miss a target, and more may not', () => {
  const of = (late: number) => told([...Array(100 - late).fill(800), ...Array(late).fill(3_000)], []);
  const now = { workers: 4, running: 1, waiting: 0, ages: [] };
  expect(of(5).desired(now, 0)).toBe(4);
  expect(of(15).desired(now, 0)).toBe(8);
  expect(of(15).ratios([], 0).firstToken).toBeCloseTo(3, 0);
});

it('the worse of both times decides, and one that has not come counts when it is late', () => {
  const now = { workers: 10, running: 5, waiting: 0, ages: [] };
  expect(told([100], [60]).desired(now, 0)).toBeGreaterThan(11);
  expect(told([100], [60]).desired(now, 0)).toBeLessThan(14);
  // Much better than asked: half of them, in one step.
  expect(told([100], [5]).desired(now, 0)).toBe(5);
  // Near below the targets the number stays.
  expect(told([900], [40]).desired(now, 0)).toBe(10);
  // A stall: nothing comes, so nothing is timed.
  expect(told([], []).desired({ ...now, ages: [900] }, 0)).toBe(10);
  expect(told([], []).desired({ ...now, ages: [30_000, 30_000] }, 0)).toBe(20);
});

it('new workers change nothing until they take requests, and silence ends in none', () => {
  const slow = told(Array(20).fill(1_500), []);
  const now = { workers: 4, running: 8, waiting: 8, ages: [] };
  const wanted = slow.desired(now, 0);
  expect(wanted).toBeGreaterThan(5);
  expect(slow.desired(now, 0)).toBe(wanted);
  const idle = { ...now, running: 0, waiting: 0 };
  expect(slow.desired(idle, 60_000)).toBeGreaterThan(0);
  expect(slow.desired(idle, 3_600_000)).toBe(0);
  expect(slow.desired(now, 3_600_000)).toBe(4);
});
