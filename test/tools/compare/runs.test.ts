import { describe, expect, it } from 'vitest';
import { medianRates, runsOf } from '../../../tools/compare/runs.js';

describe('runsOf', () => {
  it('runs a single short prompt several times, all else once', () => {
    const times = (sequences: number, promptTokens: number) =>
      runsOf({ sequences, promptTokens, generate: 8 });
    expect(times(1, 128)).toBeGreaterThan(2);
    expect([times(1, 8128), times(2, 128), times(64, 2048)]).toEqual([1, 1, 1]);
  });
});

describe('medianRates', () => {
  const rates = (value: number) => ({ prefillPerSecond: value, generationPerSecond: 10 * value });

  it('counts a single run', () => {
    expect(medianRates([rates(7)])).toEqual(rates(7));
  });

  it('leaves the first of several out, which is for warming up', () => {
    expect(medianRates([rates(1), rates(9), rates(5), rates(6)])).toEqual(rates(6));
  });
});
