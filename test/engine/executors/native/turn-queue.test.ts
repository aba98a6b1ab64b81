import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SimulatedTurns } from '../../../../engine/executors/native/addon.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';

type Engine = SimulatedTurns['engines'][number];

/** A step of 20 ms in ops of 0.1 ms, and 1 ms between two. */
const engine = (fields: Partial<Engine> = {}): Engine => ({
  threads: 2,
  weight: 1,
  opSeconds: 0.0001,
  opsPerStep: 200,
  gapSeconds: 0.001,
  startSeconds: 0,
  ...fields,
});

const simulate = (engines: Engine[], seconds = 10, processors = 2) =>
  loadAddon().simulateTurns({ processors, seconds, engines });

/** Shares of the time that was computed at all. */
function shares(engines: Engine[], seconds?: number, processors?: number): number[] {
  const held = simulate(engines, seconds, processors).map((turns) => turns.heldSeconds);
  const sum = held.reduce((total, one) => total + one, 0);
  return held.map((one) => one / sum);
}

describe('turns of engines', () => {
  it('are all of one that is alone, or beside one that idles', () => {
    const [alone] = simulate([engine()]);
    expect(alone).toMatchObject({ waitedSeconds: 0, partings: 0, steps: 476 });
    const [busy] = simulate([engine(), engine({ startSeconds: 11 })]);
    expect(busy).toEqual(alone);
  });

  it('are equal in time where all are busy, however long their ops and steps are', () => {
    const different = [engine(), engine({ opsPerStep: 20 }), engine({ opSeconds: 0.02, opsPerStep: 50 })];
    for (const share of shares(different, 30)) expect(share).toBeCloseTo(1 / 3, 1);
    for (const share of shares([engine(), engine()])) expect(share).toBeCloseTo(1 / 2, 2);
  });

  it('leave no time unused while anybody has work', () => {
    const held = simulate([engine(), engine({ gapSeconds: 0.005 })]).map((turns) => turns.heldSeconds);
    // The rest of the ten seconds are moments in which both are between two steps.
    expect(held[0]! + held[1]!).toBeGreaterThan(9.95);
  });

  it('follow the weights', () => {
    const [one, three] = shares([engine(), engine({ weight: 3 })], 30);
    expect(three! / one!).toBeGreaterThan(2.7);
    expect(three! / one!).toBeLessThan(3.3);
  });

  it('come after one op where one with little to do meets a flood of long steps', () => {
    const small = engine({ opsPerStep: 50, gapSeconds: 0.02 });
    const flood = engine({ opSeconds: 0.01, opsPerStep: 100 });
    const [user, crowd] = simulate([small, flood], 30);
    // Steps of a second, and yet it waits for one op of them.
    expect(user!.longestWaitSeconds).toBeLessThan(0.011 + 1e-9);
    expect(user!.steps).toBeGreaterThan(850);
    expect(crowd!.partings).toBeGreaterThan(500);
    // The crowd takes all the time that the user leaves.
    expect(user!.heldSeconds + crowd!.heldSeconds).toBeGreaterThan(29.5);
  });

  it('are not saved up: who idled for long has no more than a moment of credit', () => {
    const late = engine({ startSeconds: 10 });
    const [first, second] = simulate([engine(), late], 11);
    expect(first!.longestWaitSeconds).toBeLessThan(0.1);
    expect(second!.heldSeconds).toBeLessThan(0.56);
  });

  it('are at the same time where the threads fit beside each other', () => {
    const single = engine({ threads: 1 });
    for (const { waitedSeconds, steps } of simulate([single, single])) {
      expect([waitedSeconds, steps]).toEqual([0, 476]);
    }
    const [first, second, both] = simulate([single, single, engine()], 30);
    for (const turns of [first, second, both]) expect(turns!.heldSeconds).toBeGreaterThan(9);
  });

  it('are given to an engine with more threads than there are processors', () => {
    const [wide, other] = shares([engine({ threads: 8 }), engine({ threads: 8 })], 10, 4);
    expect(wide).toBeCloseTo(other!, 1);
  });

  it('starve nobody, whatever engines there are', () => {
    const anyEngine = fc.record({
      threads: fc.integer({ min: 1, max: 4 }),
      weight: fc.integer({ min: 1, max: 5 }),
      opSeconds: fc.double({ min: 0.0005, max: 0.02, noNaN: true }),
      opsPerStep: fc.integer({ min: 1, max: 60 }),
      gapSeconds: fc.double({ min: 0.0005, max: 0.1, noNaN: true }),
      startSeconds: fc.constant(0),
    });
    fc.assert(
      fc.property(fc.array(anyEngine, { minLength: 1, maxLength: 4 }), (engines) => {
        // Were they to run one after the other only, equal processor time for equal weights would be these parts.
        const part = ({ weight, threads }: Engine) => weight / threads;
        const parts = engines.reduce((sum, one) => sum + part(one), 0);
        const opSeconds = engines.reduce((sum, one) => sum + one.opSeconds, 0);
        simulate(engines, 20, 4).forEach(({ longestWaitSeconds, heldSeconds }, index) => {
          const one = engines[index]!;
          const stepSeconds = one.opSeconds * one.opsPerStep;
          // An engine that comes back for a step may find one op of every other engine under way.
          const wanted = stepSeconds / (stepSeconds + one.gapSeconds + opSeconds - one.opSeconds);
          expect(longestWaitSeconds).toBeLessThan(3);
          expect(heldSeconds).toBeGreaterThan(4 * Math.min(part(one) / parts, wanted));
        });
      }),
      { numRuns: 100 },
    );
  });
});
