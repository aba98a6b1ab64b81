import { describe, expect, it } from 'vitest';
import { RopeTable } from '../../../engine/batch/rope-table.js';

const shared = { inverseFrequencies: Float32Array.of(1, 2), scale: 1 };

describe('RopeTable', () => {
  it('has one row for all where frequencies do not depend on the length', () => {
    const table = new RopeTable(shared, null, 10);
    expect([table.assign(5), table.assign(500)]).toEqual([0, 0]);
    expect([...table.frequencies]).toEqual([1, 2]);
  });

  it('gives each request a row of its own where they do, and takes rows back', () => {
    const perLength = (length: number) => ({ inverseFrequencies: Float32Array.of(length, 0), scale: 2 });
    const table = new RopeTable(shared, perLength, 2);
    const rows = [table.assign(7), table.assign(8)];
    expect(new Set([0, ...rows]).size).toBe(3);
    for (const [i, row] of rows.entries()) {
      expect(table.frequencies[row * 2]).toBe(7 + i);
      expect(table.scales[row]).toBe(2);
    }
    expect(() => table.assign(9)).toThrow(/No row/);
    table.release(rows[0]!);
    expect(table.assign(9)).toBe(rows[0]);
    expect(table.frequencies[rows[0]! * 2]).toBe(9);
    expect(table.frequencies[0]).toBe(1);
  });
});
