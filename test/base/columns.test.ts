import { describe, expect, it } from 'vitest';
import { type ColumnCounts, ColumnTable, column, columnHolder, startColumn } from '../../base/columns.js';

const COLUMNS = {
  flags: column('u8', 'row'),
  start: startColumn('row'),
  ids: column('u64', 'row'),
  triples: column('f32', 'row', 3),
  tokens: column('i32', 'token'),
  sums: column('f64', 'row'),
} as const;

type Counts = ColumnCounts<typeof COLUMNS>;

const table = new ColumnTable(COLUMNS);

/** From the first byte of each array to the one after it, in the order of memory. */
function spans(arrays: Record<string, ArrayBufferView>) {
  return Object.values(arrays)
    .map(({ byteOffset, byteLength }) => ({ from: byteOffset, to: byteOffset + byteLength }))
    .sort((a, b) => a.from - b.from || a.to - b.to);
}

describe('ColumnTable', () => {
  it('makes each array of its type and length', () => {
    const arrays = table.allocate({ row: 2, token: 5 });
    expect(arrays).toEqual({
      flags: new Uint8Array(2),
      start: new Int32Array(3),
      ids: new BigUint64Array(2),
      triples: new Float32Array(6),
      tokens: new Int32Array(5),
      sums: new Float64Array(2),
    });
    expect(table.names).toEqual(['flags', 'start', 'ids', 'triples', 'tokens', 'sums']);
    expect(table.namesOf('i32')).toEqual(['start', 'tokens']);
  });

  it('lays arrays of any length side by side, aligned, without a gap, into exactly the bytes that it names', () => {
    for (let row = 0; row < 20; row++) {
      for (const token of [0, 1, 2, 7, 64]) {
        const bytes = table.byteLength({ row, token });
        expect(bytes).toBe(row * (1 + 4 + 8 + 12 + 8) + 4 + 4 * token);
        const arrays = table.allocate({ row, token });
        for (const array of Object.values(arrays)) {
          expect(array.buffer.byteLength).toBe(bytes);
          expect(array.byteOffset % array.BYTES_PER_ELEMENT).toBe(0);
        }
        let end = 0;
        for (const { from, to } of spans(arrays)) {
          expect(from).toBe(end);
          end = to;
        }
        expect(end).toBe(bytes);
      }
    }
  });

  it('uses memory that it is given, shared memory too, and refuses one that is too small', () => {
    const counts = { row: 3, token: 4 };
    const buffer = new SharedArrayBuffer(64 + table.byteLength(counts));
    const arrays = table.allocate(counts, { buffer, byteOffset: 64 });
    arrays.tokens.fill(7);
    expect(spans(arrays)[0]!.from).toBe(64);
    expect(spans(arrays).at(-1)!.to).toBe(buffer.byteLength);
    expect([...table.allocate(counts, { buffer, byteOffset: 64 }).tokens]).toEqual([7, 7, 7, 7]);
    expect(() => table.allocate(counts, { buffer, byteOffset: 72 })).toThrow(RangeError);
  });

  it('copies the beginnings of arrays into one buffer of just their size', () => {
    const arrays = table.allocate({ row: 8, token: 8 });
    arrays.ids.set([5n, 6n, 7n]);
    arrays.start.set([0, 2, 3, 9]);
    arrays.triples.set([1, 2, 3, 4, 5, 6, 7]);
    arrays.tokens.set([10, 11, 12, 13]);
    const copy = table.copy(arrays, { row: 2, token: 3 });
    expect([...copy.ids]).toEqual([5n, 6n]);
    expect([...copy.start]).toEqual([0, 2, 3]);
    expect([...copy.triples]).toEqual([1, 2, 3, 4, 5, 6]);
    expect([...copy.tokens]).toEqual([10, 11, 12]);
    expect(copy.ids.buffer.byteLength).toBe(table.byteLength({ row: 2, token: 3 }));
    arrays.tokens.fill(0);
    expect([...copy.tokens]).toEqual([10, 11, 12]);
  });

  it('grows all columns of one kind to the same room, with what they hold, at least to the double', () => {
    const arrays = table.allocate({ row: 2, token: 3 });
    const before = { ...arrays };
    arrays.start.set([0, 1, 3]);
    arrays.triples.set([1, 2, 3, 4, 5, 6]);
    table.grow(arrays, 'row', 3);
    expect([...arrays.start.subarray(0, 3)]).toEqual([0, 1, 3]);
    expect([...arrays.triples.subarray(0, 6)]).toEqual([1, 2, 3, 4, 5, 6]);
    const lengths = table.names.map((name) => arrays[name].length);
    expect(lengths).toEqual([4, 5, 4, 12, 3, 4]);
    expect(arrays.tokens).toBe(before.tokens);
    table.grow(arrays, 'row', 100);
    expect(arrays.start).toHaveLength(101);
    expect(arrays.flags).toHaveLength(100);
    expect(arrays.triples).toHaveLength(300);
  });

  it('leaves arrays that have room alone', () => {
    const arrays = table.allocate({ row: 4, token: 4 });
    const before = { ...arrays };
    table.grow(arrays, 'row', 4);
    table.grow(arrays, 'token', 1);
    for (const name of table.names) expect(arrays[name]).toBe(before[name]);
  });
});

describe('columnHolder', () => {
  class Rows extends columnHolder(table) {
    count = 0;

    constructor(counts: Counts) {
      super(counts);
    }
  }

  it('makes a class whose objects have the arrays', () => {
    const rows = new Rows({ row: 1, token: 2 });
    rows.tokens[1] = 4;
    expect({ ...rows }).toEqual({
      count: 0,
      ...table.allocate({ row: 1, token: 2 }),
      tokens: Int32Array.of(0, 4),
    });
    expect(new Rows({ row: 1, token: 2 }).tokens[1]).toBe(0);
  });
});
