import { describe, expect, it } from 'vitest';
import { DraftCost } from '../../../engine/speculation/draft-cost.js';

describe('what a round of the draft model costs', () => {
  it('is a share of a step of as many rows, guessed until it was measured; the first step says nothing', () => {
    const cost = new DraftCost(0.25);
    expect(cost.ofRound(8)).toBe(2);
    cost.noteRound(1000, 8);
    expect(cost.ofRound(8)).toBe(2);
    cost.noteRound(3, 8);
    expect(cost.ofRound(8)).toBe(3);
    expect(cost.ofRound(16)).toBe(6);
  });

  it('follows shorter times sooner than longer ones', () => {
    const cost = new DraftCost(1);
    for (const ms of [10, 10, 20]) cost.noteRound(ms, 1);
    expect(cost.ofRound(1)).toBeCloseTo(11);
    cost.noteRound(1, 1);
    expect(cost.ofRound(1)).toBeCloseTo(7);
  });

  it('becomes less while there are no rounds, so that what once looked slow is tried again', () => {
    const cost = new DraftCost(1);
    for (const ms of [10, 10]) cost.noteRound(ms, 1);
    for (let step = 0; step < 300; step++) cost.noteIdleStep();
    expect(cost.ofRound(1)).toBeGreaterThan(1);
    expect(cost.ofRound(1)).toBeLessThan(3);
  });

  it('has no time without one, and none of a step that took none', () => {
    const cost = new DraftCost(0.5);
    cost.noteRound(1, 1);
    cost.noteRound(0, 1);
    cost.noteRound(7, 0);
    expect(cost.ofRound(1)).toBe(0.5);
  });
});

describe('what the draft model takes to read a token', () => {
  it("is a share of the model's own time until it was measured, then the mean of what was read lately", () => {
    const cost = new DraftCost(0.25);
    expect(cost.ofReading(2)).toBe(0.5);
    cost.noteReading(100, 1000);
    expect(cost.ofReading(2)).toBe(0.5);
    cost.noteReading(100, 10);
    expect(cost.ofReading(2)).toBeCloseTo(0.1);
    cost.noteReading(20, 20);
    expect(cost.ofReading(2)).toBeCloseTo((0.8 * 10 + 20) / (0.8 * 100 + 20));
  });
});
