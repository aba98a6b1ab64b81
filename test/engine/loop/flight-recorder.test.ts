import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FlightRecorder, MAX_STEPS, NUMBERS_PER_STEP } from '../../../engine/loop/flight-recorder.js';
import { noCounts } from '../../../engine/loop/loop-statistics.js';

const counts = (fields: Partial<ReturnType<typeof noCounts>> = {}) => ({ ...noCounts(), ...fields });

/** [id, kind, begin, end, from, tokens] of each. */
function stepsOf(recorder: FlightRecorder): number[][] {
  const { steps } = recorder.take(0);
  return Array.from({ length: steps.length / NUMBERS_PER_STEP }, (_, index) =>
    Array.from(steps.subarray(index * NUMBERS_PER_STEP, (index + 1) * NUMBERS_PER_STEP)),
  );
}

describe('the flight recorder', () => {
  it('tells a step once, with the end of its iteration, and not before that', () => {
    const recorder = new FlightRecorder();
    recorder.noteChunk(7n, 1, { from: 0, tokens: 32, isLast: false }, 100);
    recorder.notePause(5n, 1, 101);
    expect(stepsOf(recorder)).toEqual([]);
    // With overlap the next one begins before this one has ended.
    recorder.noteChunk(7n, 2, { from: 32, tokens: 8, isLast: true }, 105);
    recorder.endIteration(1, counts(), 10, 110);
    expect(stepsOf(recorder)).toEqual([
      [7, 0, 100, 110, 0, 32],
      [5, 1, 101, 110, 0, 0],
    ]);
    expect(stepsOf(recorder)).toEqual([]);
    recorder.endIteration(2, counts(), 10, 120);
    expect(stepsOf(recorder)).toEqual([[7, 2, 105, 120, 32, 8]]);
  });

  it('adds iterations up, and tells the longest since it was asked', () => {
    const recorder = new FlightRecorder();
    const one = counts({ contextRequests: 1, generationRequests: 2, generatedTokens: 3, contextTokens: 40 });
    recorder.endIteration(1, one, 5, 5);
    recorder.endIteration(2, one, 9, 14);
    const { totals, longestIterationMs } = recorder.take(14);
    expect(totals).toMatchObject({ iterations: 2, iterationMs: 14, scheduledRequests: 6 });
    expect(totals).toMatchObject({ generatedTokens: 6, contextTokens: 80 });
    expect(longestIterationMs).toBe(9);
    expect(recorder.take(15)).toMatchObject({ longestIterationMs: 0, totals: { iterations: 2 } });
  });

  it('tokens that come together share the time since the one before', () => {
    const recorder = new FlightRecorder();
    recorder.noteFirstToken(80, 80);
    recorder.noteTokens(4, 20, 100);
    const { firstToken, interToken } = recorder.take(100).latency;
    expect(firstToken!.p50 / 80).toBeCloseTo(1, 1);
    expect(interToken).toMatchObject({ count: 4 });
    expect(interToken!.p99 / 5).toBeCloseTo(1, 1);
  });

  it('keeps the latest steps, in order, whatever is recorded and whenever they are taken', () => {
    const action = fc.oneof(
      { weight: 8, arbitrary: fc.record({ chunk: fc.nat(50) }) },
      { weight: 2, arbitrary: fc.constant('end' as const) },
      { weight: 1, arbitrary: fc.constant('take' as const) },
      { weight: 1, arbitrary: fc.constant('flood' as const) },
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const recorder = new FlightRecorder();
        /** The same steps in a list without a bound: the oracle. */
        let kept: { number: number; from: number }[] = [];
        let number = 1;
        let from = 0;
        const note = () => {
          recorder.noteChunk(1n, number, { from, tokens: 1, isLast: false }, number);
          kept.push({ number, from: from++ });
          kept = kept.slice(-MAX_STEPS);
        };
        for (const one of actions) {
          if (one === 'end') recorder.endIteration(number++, counts(), 1, 1000);
          else if (one === 'flood') for (let i = 0; i < 300; i++) note();
          else if (one === 'take') {
            const ended = kept.filter((step) => step.number < number);
            kept = kept.filter((step) => step.number >= number);
            expect(stepsOf(recorder).map((step) => step[4])).toEqual(ended.map((step) => step.from));
          } else for (let i = 0; i < one.chunk; i++) note();
        }
      }),
    );
  });
});
