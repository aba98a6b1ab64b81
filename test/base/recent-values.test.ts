import { describe, expect, it } from 'vitest';
import { RecentValues } from '../../base/recent-values.js';

describe('recent values', () => {
  it('are those that were used last', () => {
    const values = new RecentValues<number>({ maxCount: 3, maxUnits: 100 });
    for (const [i, key] of ['a', 'b', 'c'].entries()) values.set(key, i, 1);
    expect(values.get('a')).toBe(0);
    values.set('d', 3, 1);
    expect(['a', 'b', 'c', 'd'].map((key) => values.get(key))).toEqual([0, undefined, 2, 3]);
    expect([values.count, values.units]).toEqual([3, 3]);
  });

  it('have a bounded size together', () => {
    const values = new RecentValues<string>({ maxCount: 1000, maxUnits: 10 });
    values.set('a', 'A', 6);
    values.set('b', 'B', 4);
    expect(values.units).toBe(10);
    values.set('c', 'C', 1);
    expect([values.get('a'), values.get('b'), values.get('c')]).toEqual([undefined, 'B', 'C']);
    values.set('b', 'B again', 9);
    expect([values.units, values.get('b'), values.get('c')]).toEqual([10, 'B again', 'C']);
  });

  it('do not include one that alone is too large', () => {
    const values = new RecentValues<string>({ maxCount: 10, maxUnits: 10 });
    values.set('a', 'A', 5);
    values.set('b', 'B', 11);
    values.set('a', 'larger', 12);
    expect([values.count, values.units]).toEqual([0, 0]);
  });
});
