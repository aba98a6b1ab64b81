/** Array types by the element type of a column. */
interface ElementArrays {
  u64: BigUint64Array;
  f64: Float64Array;
  i32: Int32Array;
  f32: Float32Array;
  u16: Uint16Array;
  u8: Uint8Array;
}

export type ElementType = keyof ElementArrays;

const ARRAYS = {
  u64: BigUint64Array,
  f64: Float64Array,
  i32: Int32Array,
  f32: Float32Array,
  u16: Uint16Array,
  u8: Uint8Array,
};

/**
 * A flat array of a batch: `width` entries for each row, token, or other unit that `per` names, and `extra`
 * entries after all of them.
 */
export interface Column<T extends ElementType = ElementType, P extends string = string> {
  readonly type: T;
  readonly per: P;
  readonly width: number;
  readonly extra: number;
}

/** Columns by the names of their arrays. The docstring of a column is shown wherever its array is used. */
export type Columns = Readonly<Record<string, Column>>;

/** Arrays of columns, by name. */
export type ColumnArrays<C extends Columns> = { readonly [K in keyof C]: ElementArrays[C[K]['type']] };

/** Number of rows, tokens and so on, for each `per` of the columns. */
export type ColumnCounts<C extends Columns> = Record<C[keyof C]['per'], number>;

/** A region of memory for arrays: from a byte of a buffer on, a multiple of 8. */
export interface MemoryRegion {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}

/** A column with `width` entries for each item. */
export function column<T extends ElementType, P extends string>(type: T, per: P, width = 1): Column<T, P> {
  return { type, per, width, extra: 0 };
}

/**
 * A column of offsets: where the entries of each item begin in another column, and at last where they all end. Its
 * length is the number of items plus 1.
 */
export function startColumn<P extends string>(per: P): Column<'i32', P> {
  return { type: 'i32', per, width: 1, extra: 1 };
}

/** A column with the sizes that are known before there are arrays. */
interface LaidOutColumn extends Column {
  readonly name: string;
  readonly Elements: (typeof ARRAYS)[ElementType];
  readonly entryBytes: number;
}

/** An object that arrays are being put into. */
type Holder = Record<string, ArrayBufferView>;

/**
 * Makes, grows and copies the arrays of some columns by one description of them.
 *
 *   table     ids u64 per row, start i32 per row and one more, tokens i32 per token
 *   counts    row 2, token 5
 *   memory    ids (16 bytes) | start (12) | tokens (20)        the widest entries first, so that every array is aligned
 */
export class ColumnTable<C extends Columns> {
  /** Names of the columns, in the order of the description. */
  readonly names: readonly (keyof C & string)[];
  readonly #columns: C;
  /** Columns in the order in which they are laid out in memory. */
  readonly #laidOut: readonly LaidOutColumn[];

  constructor(columns: C) {
    this.#columns = columns;
    this.names = Object.keys(columns);
    this.#laidOut = this.names
      .map((name) => laidOut(name, columns[name]!))
      .sort((a, b) => b.entryBytes - a.entryBytes);
  }

  /** Names of the columns whose entries are of this type, in the order of the description. */
  namesOf(type: ElementType): string[] {
    return this.names.filter((name) => this.#columns[name]!.type === type);
  }

  /** Bytes that all arrays take for these counts. */
  byteLength(counts: ColumnCounts<C>): number {
    let bytes = 0;
    for (const one of this.#laidOut) bytes += lengthOf(one, counts) * one.entryBytes;
    return bytes;
  }

  /** New arrays over one piece of memory: zeroed memory, unless a region is given. */
  allocate(counts: ColumnCounts<C>, region?: MemoryRegion): ColumnArrays<C> {
    const target = {};
    this.allocateInto(target, counts, region);
    return target as ColumnArrays<C>;
  }

  /** Allocates arrays as properties of an object that is being made. */
  allocateInto(target: object, counts: ColumnCounts<C>, region = this.#newRegion(counts)): void {
    const buffer = region.buffer as ArrayBuffer;
    let { byteOffset } = region;
    for (const one of this.#laidOut) {
      const length = lengthOf(one, counts);
      (target as Holder)[one.name] = new one.Elements(buffer, byteOffset, length);
      byteOffset += length * one.entryBytes;
    }
  }

  /** Copies the beginnings of arrays, as far as `counts` say, into one new buffer. */
  copy(source: ColumnArrays<C>, counts: ColumnCounts<C>): ColumnArrays<C> {
    const buffer = new ArrayBuffer(this.byteLength(counts));
    const copies: Holder = {};
    let byteOffset = 0;
    for (const one of this.#laidOut) {
      const length = lengthOf(one, counts);
      const array = new one.Elements(buffer, byteOffset, length) as Int32Array;
      array.set((source[one.name] as Int32Array).subarray(0, length));
      copies[one.name] = array;
      byteOffset += length * one.entryBytes;
    }
    return copies as ColumnArrays<C>;
  }

  /**
   * Makes room for `count` items: where it is short, replaces all columns of this `per` by longer arrays with the same
   * beginnings, for at least twice as many items as before.
   */
  grow(target: ColumnArrays<C>, per: C[keyof C]['per'], count: number): void {
    const columns = this.#laidOut.filter((one) => one.per === per);
    const rooms = columns.map(({ name, width, extra }) => (target[name]!.length - extra) / width);
    const room = Math.min(...rooms);
    if (count <= room) return;
    const larger = Math.max(count, 2 * room);
    for (const { name, Elements, width, extra } of columns) {
      const longer = new Elements(larger * width + extra) as Int32Array;
      longer.set(target[name] as Int32Array);
      (target as Holder)[name] = longer;
    }
  }

  #newRegion(counts: ColumnCounts<C>): MemoryRegion {
    return { buffer: new ArrayBuffer(this.byteLength(counts)), byteOffset: 0 };
  }
}

function laidOut(name: string, column: Column): LaidOutColumn {
  const Elements = ARRAYS[column.type];
  return { ...column, name, Elements, entryBytes: Elements.BYTES_PER_ELEMENT };
}

function lengthOf({ per, width, extra }: Column, counts: Readonly<Record<string, number>>): number {
  return counts[per]! * width + extra;
}

/** A class whose objects have the arrays of a table as properties; classes that pack or write the arrays extend it. */
export function columnHolder<C extends Columns>(
  table: ColumnTable<C>,
): new (
  counts: ColumnCounts<C>,
  region?: MemoryRegion,
) => ColumnArrays<C> {
  class ColumnHolder {
    constructor(counts: ColumnCounts<C>, region?: MemoryRegion) {
      table.allocateInto(this, counts, region);
    }
  }
  return ColumnHolder as new (
    counts: ColumnCounts<C>,
    region?: MemoryRegion,
  ) => ColumnArrays<C>;
}
