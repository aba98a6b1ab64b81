import { describe, expect, it } from 'vitest';
import { RoundCost } from '../../../engine/speculation/round-cost.js';

describe('what a round of the draft model costs', () => {
  it('is a share of a step until it was measured, and the first round says nothing', () => {
    const cost = new RoundCost(0.25);
    expect(cost.of(8)).toBe(2);
    cost.note(1000);
    expect(cost.of(8)).toBe(2);
    cost.note(3);
    expect(cost.of(8)).toBe(3);
  });

  it('follows shorter times sooner than longer ones', () => {
    const cost = new RoundCost(1);
    for (const ms of [10, 10, 20]) cost.note(ms);
    expect(cost.of(1)).toBeCloseTo(11);
    cost.note(1);
    expect(cost.of(1)).toBeCloseTo(7);
  });

  it('becomes less while there are no rounds, so that what once looked slow is tried again', () => {
    const cost = new RoundCost(1);
    for (const ms of [10, 10]) cost.note(ms);
    for (let step = 0; step < 300; step++) cost.noteIdleStep();
    expect(cost.of(1)).toBeGreaterThan(1);
    expect(cost.of(1)).toBeLessThan(3);
  });
});
