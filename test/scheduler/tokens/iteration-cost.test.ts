import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  contextPairs,
  IterationCostEstimator,
  type IterationWork,
} from '../../../scheduler/tokens/iteration-cost.js';

const TRUE_COST = { fixedMs: 20, rowMs: 0.5, tokenMs: 0.3, pairMs: 0.0002 };

function msOf(
  { generationRows, contextTokens, contextPairs: pairs }: IterationWork,
  cost = TRUE_COST,
): number {
  return cost.fixedMs + cost.rowMs * generationRows + cost.tokenMs * contextTokens + cost.pairMs * pairs;
}

function work(generationRows: number, contextTokens: number, position = 0): IterationWork {
  return { generationRows, contextTokens, contextPairs: contextPairs(position, contextTokens) };
}

/** Iterations of all kinds: generation alone, contexts alone, both. */
function mixed(count: number): IterationWork[] {
  return Array.from({ length: count }, (_, i) =>
    work((i * 7) % 64, i % 3 === 0 ? 0 : 32 * ((i * 5) % 16), 256 * (i % 9)),
  );
}

function learned(works: readonly IterationWork[], ms: (work: IterationWork, i: number) => number) {
  const estimator = new IterationCostEstimator();
  for (const [i, one] of works.entries()) estimator.note(one, ms(one, i));
  return estimator.cost!;
}

describe('contextPairs', () => {
  it('counts what each token of a chunk attends to, half of the chunk itself on average', () => {
    expect(contextPairs(0, 32)).toBe(512);
    expect(contextPairs(100, 32)).toBe(3200 + 512);
    expect(contextPairs(100, 0)).toBe(0);
  });
});

describe('an iteration cost', () => {
  it('is not known before an iteration had context tokens', () => {
    const estimator = new IterationCostEstimator();
    for (let i = 1; i < 50; i++) estimator.note(work(i, 0), 20);
    expect(estimator.cost).toBeNull();
    estimator.note(work(4, 32), 30);
    expect(estimator.cost).not.toBeNull();
  });

  it('is found where times are exactly what the parts add up to', () => {
    const cost = learned(mixed(64), (one) => msOf(one));
    expect(cost.fixedMs).toBeCloseTo(TRUE_COST.fixedMs, 0);
    expect(cost.rowMs).toBeCloseTo(TRUE_COST.rowMs, 1);
    expect(cost.tokenMs).toBeCloseTo(TRUE_COST.tokenMs, 2);
    expect(cost.pairMs).toBeCloseTo(TRUE_COST.pairMs, 5);
    expect(cost.spread).toBeLessThan(0.01);
  });

  it('is hardly moved by a few iterations that the machine interrupted', () => {
    const disturbed = learned(mixed(64), (one, i) => msOf(one) * (i % 10 === 3 ? 25 : 1));
    for (const one of mixed(64)) {
      const { generationRows, contextTokens, contextPairs: pairs } = one;
      const { fixedMs, rowMs, tokenMs, pairMs } = disturbed;
      const predicted = fixedMs + rowMs * generationRows + tokenMs * contextTokens + pairMs * pairs;
      expect(Math.abs(predicted / msOf(one) - 1)).toBeLessThan(0.2);
    }
  });

  it('is hardly moved by an iteration that seems to have taken half of its time', () => {
    const disturbed = learned(mixed(64), (one, i) => msOf(one) * (i % 32 === 25 ? 0.5 : 1));
    expect(disturbed.fixedMs).toBeCloseTo(TRUE_COST.fixedMs, 0);
    expect(disturbed.tokenMs).toBeCloseTo(TRUE_COST.tokenMs, 1);
  });

  it('has a spread of about what the times spread', () => {
    const { spread } = learned(mixed(64), (one, i) => msOf(one) * (i % 2 === 0 ? 0.9 : 1.1));
    expect(spread).toBeGreaterThan(0.05);
    expect(spread).toBeLessThan(0.15);
  });

  it('follows a machine that becomes slower, whatever came before', () => {
    const estimator = new IterationCostEstimator();
    for (const one of mixed(500)) estimator.note(one, msOf(one));
    for (const one of mixed(200)) estimator.note(one, 3 * msOf(one));
    expect(estimator.cost!.tokenMs).toBeCloseTo(3 * TRUE_COST.tokenMs, 1);
  });

  it('keeps what it knows of context tokens however long none come', () => {
    const estimator = new IterationCostEstimator();
    for (const one of mixed(64)) estimator.note(one, msOf(one));
    for (let i = 0; i < 10_000; i++) estimator.note(work(i % 64, 0), msOf(work(i % 64, 0)));
    expect(estimator.cost!.tokenMs).toBeCloseTo(TRUE_COST.tokenMs, 1);
  });

  it('ignores times that are none', () => {
    const estimator = new IterationCostEstimator();
    for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) estimator.note(work(1, 32), ms);
    expect(estimator.cost).toBeNull();
  });

  it('is finite and never below 0, whatever the times', () => {
    const sample = fc.record({
      rows: fc.nat(128),
      tokens: fc.nat(4096),
      position: fc.nat(100_000),
      ms: fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 100 }), (samples) => {
        const estimator = new IterationCostEstimator();
        for (const { rows, tokens, position, ms } of samples)
          estimator.note(work(rows, tokens, position), ms);
        const { cost } = estimator;
        expect(cost === null).toBe(samples.every(({ tokens }) => tokens === 0));
        for (const part of Object.values(cost ?? {})) {
          expect(Number.isFinite(part)).toBe(true);
          expect(part).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});
