import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SAMPLING_PARAMS } from '../../../callbacks/sampling-params.js';
import { DryPenalty } from '../../../engine/decoding/dry-penalty.js';
import { naiveDry } from '../../support/naive-chain.js';
import { draws } from '../../support/scale.js';

const VOCAB = 6;
const params = (given: Partial<typeof DEFAULT_SAMPLING_PARAMS>) => ({
  ...DEFAULT_SAMPLING_PARAMS,
  dryMultiplier: 0.8,
  ...given,
});

function lostBehind(tokens: number[], given: object, breakers: number[][] = []): Record<number, number> {
  const words = breakers.map((breaker) => Int32Array.from(breaker));
  const dry = DryPenalty.of(params(given), words, VOCAB)!;
  const bias = dry.biasBehind(Int32Array.from(tokens), tokens.length);
  return Object.fromEntries([...(bias?.tokens ?? [])].map((token, i) => [token, -bias!.values[i]!]));
}

describe('the DRY penalty', () => {
  it('grows with each token of the repetition', () => {
    expect(lostBehind([1, 2, 3, 1], {})).toEqual({});
    expect(lostBehind([1, 2, 3, 1, 2], {})).toEqual({ 3: expect.closeTo(0.8) });
    expect(lostBehind([0, 1, 2, 3, 0, 1, 2], {})).toEqual({ 3: expect.closeTo(0.8 * 1.75) });
  });

  it('does not reach back over a breaker', () => {
    expect(lostBehind([0, 1, 2, 3, 0, 1, 2], {}, [[1]])).toEqual({});
    expect(lostBehind([0, 1, 2, 3, 0, 1, 2], {}, [[0]])).toEqual({ 3: expect.closeTo(0.8) });
    expect(lostBehind([0, 1, 2, 3, 0, 1, 2], {}, [[5, 0]])).toEqual({ 3: expect.closeTo(0.8 * 1.75) });
  });

  it('has a bound however long the repetition is', () => {
    const { 1: lost } = lostBehind(new Array(5000).fill(1), { dryBase: 1000 });
    expect(lost).toBeCloseTo(1e30, -26);
  });

  it('is off without a multiplier, and without tokens to look at', () => {
    expect(DryPenalty.of(params({ dryMultiplier: 0 }), [], VOCAB)).toBeNull();
    expect(DryPenalty.of(params({ dryPenaltyLastN: 0 }), [], VOCAB)).toBeNull();
  });

  it('leaves rows of a prompt table alone', () => {
    expect(lostBehind([1, 2, VOCAB, 1, 2], {})).toEqual({});
  });

  it('is what comparing every place with the end gives', () => {
    const token = fc.integer({ min: 0, max: 3 });
    const breaker = fc.array(token, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 40 }),
        fc.array(breaker, { maxLength: 2 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: -1, max: 30 }).filter((lastN) => lastN !== 0),
        (tokens, breakers, dryAllowedLength, dryPenaltyLastN) => {
          const found = lostBehind(tokens, { dryAllowedLength, dryPenaltyLastN }, breakers);
          const settings = {
            multiplier: 0.8,
            base: 1.75,
            allowedLength: dryAllowedLength,
            lastN: dryPenaltyLastN,
          };
          const expected = naiveDry(tokens, settings, breakers);
          expect(Object.keys(found).map(Number)).toEqual([...expected.keys()].sort());
          for (const [id, lost] of expected)
            expect(found[id]).toBeCloseTo(lost, 4 - Math.ceil(Math.log10(lost)));
        },
      ),
      { numRuns: draws(100) },
    );
  });
});
