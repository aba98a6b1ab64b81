import { describe, expect, it } from 'vitest';
import { chooseDraftLengths } from '../../../engine/speculation/draft-lengths.js';
import { StepCost } from '../../../engine/speculation/step-cost.js';

describe('StepCost', () => {
  it('hopes for idle rows until it has measured', () => {
    const cost = new StepCost(64);
    expect(cost.of(4) / cost.of(1)).toBeLessThan(1.1);
    expect(cost.of(64) / cost.of(32)).toBeCloseTo(2, 6);
  });

  it('interpolates between what was measured and scales its guess beyond', () => {
    const cost = new StepCost(64);
    for (let i = 0; i < 2; i++) cost.note(2, 10);
    for (let i = 0; i < 2; i++) cost.note(6, 30);
    expect(cost.of(2)).toBe(10);
    expect(cost.of(4)).toBe(20);
    expect(cost.of(1)).toBeCloseTo(10 / 1.02, 6);
    expect(cost.of(48) / cost.of(24)).toBeCloseTo(2, 6);
    expect(cost.of(200)).toBeGreaterThan(cost.of(64));
  });

  it('takes the median of the latest times, so that one that was disturbed changes nothing', () => {
    const cost = new StepCost(8);
    for (const ms of [10, 11, 90, 10, 12]) cost.note(1, ms);
    expect(cost.of(1)).toBe(11);
    for (const ms of [20, 21, 22]) cost.note(1, ms);
    expect(cost.of(1)).toBe(20);
  });

  it('holds a row count for slow only after it was slow twice', () => {
    const cost = new StepCost(32);
    for (let i = 0; i < 5; i++) cost.note(1, 10);
    cost.note(5, 80);
    expect(cost.of(5)).toBeCloseTo(10.8, 6);
    cost.note(5, 90);
    expect(cost.of(5)).toBe(80);
    cost.note(5, 12);
    expect(cost.of(5)).toBe(80);
    cost.note(5, 12);
    cost.note(5, 12);
    expect(cost.of(5)).toBe(12);
  });

  it('takes no row count for slower than a greater one', () => {
    const cost = new StepCost(32);
    for (let i = 0; i < 5; i++) cost.note(1, 10);
    for (let i = 0; i < 3; i++) cost.note(5, 80);
    for (let i = 0; i < 3; i++) cost.note(8, 14);
    expect(cost.of(5)).toBe(14);
    expect(cost.of(3)).toBe(12);
    expect(cost.of(8)).toBe(14);
  });

  it('forgets what it has not seen for long', () => {
    const cost = new StepCost(8);
    for (let i = 0; i < 3; i++) cost.note(4, 100);
    for (let i = 0; i < 255; i++) cost.note(1, 10);
    expect(cost.of(4)).toBe(100);
    for (let i = 0; i < 3; i++) cost.note(1, 10);
    expect(cost.of(4)).toBeLessThan(11);
  });

  it('takes no time that is none, and no row count that it has no place for', () => {
    const cost = new StepCost(4);
    for (const [rows, ms] of [
      [1, 0],
      [1, Number.NaN],
      [0, 5],
      [5, 5],
    ] as const) {
      cost.note(rows, ms);
    }
    expect(cost.of(1)).toBe(1);
  });

  it('a full batch whose rows each cost their share has no drafts once its steps are measured', () => {
    const cost = new StepCost(128);
    for (let i = 0; i < 8; i++) cost.note(64, 50);
    const candidates = Array.from({ length: 64 }, () => ({ acceptance: 0.9, most: 8, drawn: false }));
    const { lengths } = chooseDraftLengths(candidates, {
      rows: 64,
      spareRows: 64,
      costOf: (rows) => cost.of(rows),
      roundCostOf: () => 0,
    });
    expect(lengths.every((length) => length === 0)).toBe(true);
  });
});
