/** Numbers of a row: see BlockIndex. */
export const WORKER = 0;
/** How often a pair was noted by addAgain; 1 for one that was noted by add. */
export const COUNT = 1;
/** 1: the worker keeps the states of sequences after the block. */
export const STATE = 2;
export const NEXT_OF_BLOCK = 3;
export const PREVIOUS_OF_BLOCK = 4;
export const NEXT_OF_WORKER = 5;
export const PREVIOUS_OF_WORKER = 6;
/** Numbers of a row, one of which is spare: a row lies in one or two lines of a processor's cache. */
const ROW_LENGTH = 8;
const ROW_SHIFT = 3;

/** Rows of a page: 160 KB. */
const PAGE_SHIFT = 12;
const PAGE_ROWS = 1 << PAGE_SHIFT;
const IN_PAGE = PAGE_ROWS - 1;

type Field =
  | typeof WORKER
  | typeof COUNT
  | typeof STATE
  | typeof NEXT_OF_BLOCK
  | typeof PREVIOUS_OF_BLOCK
  | typeof NEXT_OF_WORKER
  | typeof PREVIOUS_OF_WORKER;

/** Rows of numbers with a hash each, in pages: one more page is made where there is no room, and nothing is ever copied. */
export class PairRows {
  readonly #numbers: Int32Array[] = [];
  readonly #hashes: Float64Array[] = [];
  #size = 0;

  /** Adds a row. @returns its number, from 0 on */
  add(): number {
    if (this.#size === this.#numbers.length * PAGE_ROWS) {
      this.#numbers.push(new Int32Array(PAGE_ROWS * ROW_LENGTH));
      this.#hashes.push(new Float64Array(PAGE_ROWS));
    }
    this.#size += 1;
    return this.#size - 1;
  }

  get(row: number, field: Field): number {
    return this.#numbers[row >> PAGE_SHIFT]![((row & IN_PAGE) << ROW_SHIFT) + field]!;
  }

  set(row: number, field: Field, value: number): void {
    this.#numbers[row >> PAGE_SHIFT]![((row & IN_PAGE) << ROW_SHIFT) + field] = value;
  }

  hashOf(row: number): number {
    return this.#hashes[row >> PAGE_SHIFT]![row & IN_PAGE]!;
  }

  setHash(row: number, hash: number): void {
    this.#hashes[row >> PAGE_SHIFT]![row & IN_PAGE] = hash;
  }
}
