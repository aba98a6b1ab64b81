import { describe, expect, it } from 'vitest';
import { HiddenRows, headRows } from '../../../engine/speculation/hidden-rows.js';

/** Rows of 2 numbers that encode their place. */
const rowsOf = (place: number, count: number) =>
  Float32Array.from({ length: 2 * count }, (_, i) => 10 * (place + (i >> 1)) + (i % 2));
const at = (requestId: bigint, numTokens: number) => ({ requestId, numTokens });

describe('the rows that a head has not read', () => {
  it('are the latest ones, however long a prompt is', () => {
    const rows = new HiddenRows(2, 4);
    rows.note(1n, 0, rowsOf(0, 3), 3);
    rows.note(1n, 3, rowsOf(3, 9), 9);
    expect(rows.firstOf(at(1n, 13))).toBe(8);
    for (const place of [8, 11]) expect([...rows.rowOf(1n, place)]).toEqual([10 * place, 10 * place + 1]);
    expect(() => rows.rowOf(1n, 7)).toThrow('Request 1 has no row of place 7.');
    // Those of the places before the newest token are not there.
    expect(rows.firstOf(at(1n, 14))).toBeUndefined();
    expect(rows.firstOf(at(2n, 14))).toBeUndefined();
  });

  it('begin anew where places lie between, and keep the last one that was read', () => {
    const rows = new HiddenRows(2, 4);
    rows.note(1n, 2, rowsOf(2, 2), 2);
    rows.forgetBefore(1n, 9);
    expect(rows.firstOf(at(1n, 5))).toBe(3);
    rows.note(1n, 6, rowsOf(6, 1), 1);
    expect(rows.firstOf(at(1n, 8))).toBe(6);
    rows.note(1n, 7, rowsOf(7, 1), 0);
    expect(rows.firstOf(at(1n, 8))).toBe(6);
    expect(rows.size).toBe(1);
    rows.release(1n);
    expect(rows.size).toBe(0);
  });

  it('are few for each of many sequences, and enough for what was right of a draft', () => {
    expect(headRows({ maxNumSequences: 1, maxDraftLen: 8 })).toBe(256);
    expect(headRows({ maxNumSequences: 256, maxDraftLen: 8 })).toBe(32);
    expect(headRows({ maxNumSequences: 4096, maxDraftLen: 8 })).toBe(18);
  });
});
