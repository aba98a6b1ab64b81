import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EncoderWork, takeEncoderBatch } from '../../../scheduler/tokens/encoder-scheduler.js';

const work = (...lengths: number[]): EncoderWork => ({ lengths, taken: 0 });
const BUDGET = { maxNumTokens: 24, maxNumSequences: 8 };

/** The lengths of a batch by the index of their request. */
function take(waiting: EncoderWork[], budget = BUDGET): [number, number][] {
  return takeEncoderBatch(waiting, budget).map(({ work: one, index }) => [
    waiting.indexOf(one),
    one.lengths[index]!,
  ]);
}

describe('batches of an encoder', () => {
  it('let requests take turns, and pass over what does not fit', () => {
    const waiting = [work(5, 5, 5, 5), work(3), work(9, 2)];
    expect(take(waiting)).toEqual([
      [0, 5],
      [1, 3],
      [2, 9],
      [0, 5],
      [2, 2],
    ]);
    expect(take(waiting)).toEqual([
      [0, 5],
      [0, 5],
    ]);
    expect(take(waiting)).toEqual([]);
  });

  it('hold no more sequences than they may', () => {
    const waiting = [work(1, 1, 1), work(1, 1)];
    expect(take(waiting, { maxNumTokens: 24, maxNumSequences: 3 })).toEqual([
      [0, 1],
      [1, 1],
      [0, 1],
    ]);
  });

  it('a single text is in the first batch beside a request with thousands', () => {
    const waiting = [work(...new Array<number>(2048).fill(20)), work(4)];
    expect(take(waiting)).toContainEqual([1, 4]);
  });

  it('give every sequence once, in order, within the budget, the oldest request always first', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 24 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(lengths, { minLength: 1, maxLength: 6 }), (requests) => {
        const waiting = requests.map((one) => work(...one));
        const given = requests.map(() => [] as number[]);
        for (let left = requests.flat().length; left > 0; ) {
          const oldest = waiting.findIndex((one) => one.taken < one.lengths.length);
          const batch = take(waiting);
          expect(batch[0]![0]).toBe(oldest);
          expect(batch.length).toBeLessThanOrEqual(BUDGET.maxNumSequences);
          expect(batch.reduce((sum, [, length]) => sum + length, 0)).toBeLessThanOrEqual(BUDGET.maxNumTokens);
          for (const [request, length] of batch) given[request]!.push(length);
          left -= batch.length;
        }
        expect(given).toEqual(requests);
      }),
    );
  });
});
