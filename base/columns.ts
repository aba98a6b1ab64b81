/** What the entries of a column are stored as. */
interface ElementArrays {
  u64: BigUint64Array;
  f64: Float64Array;
  i32: Int32Array;
  f32: Float32Array;
  u8: Uint8Array;
}

export type ElementType = keyof ElementArrays;

const ARRAYS = { u64: BigUint64Array, f64: Float64Array, i32: Int32Array, f32: Float32Array, u8: Uint8Array };

/** A flat array of a batch: `width` entries for each of what it is per, and `extra` behind all of them. */
export interface Column<T extends ElementType = ElementType, P extends string = string> {
  readonly type: T;
  readonly per: P;
  readonly width: number;
  readonly extra: number;
}

/** Columns by the names of their arrays. What a column means is said here, and is shown wherever its array is used. */
export type Columns = Readonly<Record<string, Column>>;

/** The arrays of columns. */
export type ColumnArrays<C extends Columns> = { readonly [K in keyof C]: ElementArrays[C[K]['type']] };

/** How many there are of all that the columns are per. */
export type ColumnCounts<C extends Columns> = Record<C[keyof C]['per'], number>;

/** Where arrays lie: from this byte of a buffer on, a multiple of 8. */
export interface MemoryRegion {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}

/** `width` entries for each. */
export function column<T extends ElementType, P extends string>(type: T, per: P, width = 1): Column<T, P> {
  return { type, per, width, extra: 0 };
}

/** Where the entries of each begin in another column; the last one is where those of all end: one entry more than there are. */
export function startColumn<P extends string>(per: P): Column<'i32', P> {
  return { type: 'i32', per, width: 1, extra: 1 };
}

/** What is known of a column before there are any arrays. */
interface LaidOutColumn extends Column {
  readonly name: string;
  readonly Elements: (typeof ARRAYS)[ElementType];
  readonly entryBytes: number;
}

/** An object while arrays are put into it. */
type Holder = Record<string, ArrayBufferView>;

/**
 * The arrays of some columns, made, grown and copied by one description of them.
 *
 *   table     ids u64 per row, start i32 per row and one more, tokens i32 per token
 *   counts    row 2, token 5
 *   memory    ids (16 bytes) | start (12) | tokens (20)        the widest entries first, so that every array is aligned
 */
export class ColumnTable<C extends Columns> {
  /** In the order of the description. */
  readonly names: readonly (keyof C & string)[];
  readonly #columns: C;
  /** In the order in which they lie in memory. */
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

  /** What all arrays take, of which there are so many entries. */
  byteLength(counts: ColumnCounts<C>): number {
    let bytes = 0;
    for (const one of this.#laidOut) bytes += lengthOf(one, counts) * one.entryBytes;
    return bytes;
  }

  /** New arrays over one piece of memory, which is zero where it is not given. */
  allocate(counts: ColumnCounts<C>, region?: MemoryRegion): ColumnArrays<C> {
    const target = {};
    this.allocateInto(target, counts, region);
    return target as ColumnArrays<C>;
  }

  /** The same, as properties of an object that is being made. */
  allocateInto(target: object, counts: ColumnCounts<C>, region = this.#newRegion(counts)): void {
    const buffer = region.buffer as ArrayBuffer;
    let { byteOffset } = region;
    for (const one of this.#laidOut) {
      const length = lengthOf(one, counts);
      (target as Holder)[one.name] = new one.Elements(buffer, byteOffset, length);
      byteOffset += length * one.entryBytes;
    }
  }

  /** Copies of the beginnings of arrays, all of them in one new buffer. */
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
   * Where there is no room for so many, puts longer arrays with the same beginnings in the place of all columns of this kind:
   * for at least twice as many as there was room for.
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

/** A class whose objects have the arrays of a table as properties: what packs or writes them extends it. */
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
