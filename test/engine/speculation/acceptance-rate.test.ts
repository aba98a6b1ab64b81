import { describe, expect, it } from 'vitest';
import { AcceptanceRate } from '../../../engine/speculation/acceptance-rate.js';

describe('AcceptanceRate', () => {
  it('begins with its guess and comes to what it sees', () => {
    const rate = new AcceptanceRate(0.6);
    expect(rate.rate).toBeCloseTo(0.6, 9);
    for (let i = 0; i < 30; i++) rate.note(4, 4);
    expect(rate.rate).toBeGreaterThan(0.9);
    for (let i = 0; i < 30; i++) rate.note(4, 0);
    expect(rate.rate).toBeLessThan(0.25);
  });

  it('counts one wrong token of a draft, and nothing behind it', () => {
    const rate = new AcceptanceRate(0.5);
    rate.note(8, 3);
    expect(rate.rate).toBeCloseTo((3 + 1) / (4 + 2), 9);
    const short = new AcceptanceRate(0.5);
    short.note(3, 3);
    expect(short.rate).toBeCloseTo((3 + 1) / (3 + 2), 9);
  });

  it('returns to its guess while nothing is drafted', () => {
    const rate = new AcceptanceRate(0.6);
    for (let i = 0; i < 30; i++) rate.note(4, 0);
    const low = rate.rate;
    for (let i = 0; i < 200; i++) rate.noteIdleStep();
    expect(rate.rate).toBeGreaterThan(low);
    expect(rate.rate).toBeCloseTo(0.6, 1);
  });
});
