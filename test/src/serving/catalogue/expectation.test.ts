import { describe, expect, it } from 'vitest';
import { expectationOf } from '../../../../src/serving/catalogue/expectation.js';
import { ReadingSpeed } from '../../../../src/serving/catalogue/reading-speed.js';

const model = { weightBytes: 600, readBytes: 100, cacheBytesPerToken: 0.1, contextTokens: 4000 };

describe('what a model can be expected to do', () => {
  it('is its bytes for each token against the speed of memory', () => {
    expect(expectationOf(model, 10_000, 1000)).toEqual({
      fits: true,
      cachedTokens: 4000,
      tokensPerSecond: 10,
    });
    expect(expectationOf(model, 10_000, null).tokensPerSecond).toBe(null);
  });

  it.each([
    ['weights alone that do not fit', 599, false, 0],
    ['no room for a conversation besides', 700, false, 1000],
    ['room for one', 820, true, 2050],
    ['a cache of a quarter of the memory', 1200, true, 3000],
  ])('%s', (_, memoryBytes, fits, cachedTokens) => {
    expect(expectationOf(model, memoryBytes, 1)).toMatchObject({ fits, cachedTokens });
  });

  it('needs no cache where no layer attends', () => {
    const stateful = { ...model, cacheBytesPerToken: 0 };
    expect(expectationOf(stateful, 600, 1)).toMatchObject({ fits: true, cachedTokens: 4000 });
  });
});

describe('the speed of memory', () => {
  it('is measured while nothing computes, and not at each look', async () => {
    let isIdle = false;
    const rates = [5, 9];
    const speed = new ReadingSpeed(
      async () => rates.shift()!,
      () => isIdle,
    );
    expect(speed.bytesPerSecond).toBe(null);
    expect(rates).toHaveLength(2);
    isIdle = true;
    expect(speed.bytesPerSecond).toBe(null);
    await speed.settled;
    expect(speed.bytesPerSecond).toBe(5);
    await speed.settled;
    expect([speed.bytesPerSecond, rates]).toEqual([5, [9]]);
  });

  it('stays unknown where it cannot be measured', async () => {
    const speed = new ReadingSpeed(
      () => Promise.reject(new Error('no thread')),
      () => true,
    );
    expect(speed.bytesPerSecond).toBe(null);
    await speed.settled;
    expect(speed.bytesPerSecond).toBe(null);
  });
});
