import type { BpeTables } from './bpe-tables.js';
import { LeastTree, NO_VALUE } from './least-tree.js';
import { NONE } from './slot-table.js';

/** Takes a symbol of a word, from start to end; NONE for a character that is no symbol. */
export type TakeSymbol = (symbol: number, start: number, end: number) => void;

/**
 * Calls `take` with the symbols of a word when nothing in it can be merged any more, in order: each step applies the merge of lowest
 * rank, the leftmost of equal ones. It takes nine bytes a UTF-16 unit, for words of any length.
 *
 * A symbol is known by where it begins: a bit for each character says whether one begins there. For each
 * symbol followed by another one, the tree has the rank of the merge of both.
 *
 * @param word not empty
 * @param suffix of its last symbol
 */
export function eachSymbol(word: string, suffix: string, tables: BpeTables, take: TakeSymbol): void {
  const spelled = word + suffix;
  const starts = new Starts(spelled.length);
  for (let i = 0; i < word.length; i += characterLength(word, i)) starts.add(i);
  const symbols = new Int32Array(word.length);
  for (let start = 0, end = 0; start < spelled.length; start = end) {
    end = starts.after(start);
    symbols[start] = tables.symbolAt(spelled, start, end);
  }
  if (starts.after(0) < spelled.length) merge(symbols, starts, spelled.length, tables);
  for (let start = 0, end = 0; start < spelled.length; start = end) {
    end = starts.after(start);
    take(symbols[start]!, start, end);
  }
}

/** @param length of the text whose symbols these are, each where it begins */
function merge(symbols: Int32Array, starts: Starts, length: number, tables: BpeTables): void {
  const ranks = new LeastTree(symbols.length);
  const rankAt = (left: number, right: number): number => {
    if (right === length || symbols[left] === NONE || symbols[right] === NONE) return NO_VALUE;
    const rank = tables.rankOf(symbols[left]!, symbols[right]!);
    return rank === NONE ? NO_VALUE : rank;
  };
  for (let start = 0; start < length; ) {
    const next = starts.after(start);
    ranks.setUnbuilt(start, rankAt(start, next));
    start = next;
  }
  ranks.build();
  for (let left = ranks.first(); left !== -1; left = ranks.first()) {
    const right = starts.after(left);
    symbols[left] = tables.resultOf(tables.rankOf(symbols[left]!, symbols[right]!));
    starts.remove(right);
    ranks.set(right, NO_VALUE);
    ranks.set(left, rankAt(left, starts.after(left)));
    if (left === 0) continue;
    const previous = starts.before(left);
    ranks.set(previous, rankAt(previous, left));
  }
}

/** UTF-16 units of the code point at an index. */
function characterLength(text: string, at: number): number {
  return text.codePointAt(at)! > 0xffff ? 2 : 1;
}

/** Bits that tell where symbols begin in a text. The text's end counts as a beginning. */
class Starts {
  readonly #bits: Int32Array;

  constructor(length: number) {
    this.#bits = new Int32Array((length >>> 5) + 1);
    this.add(length);
  }

  add(at: number): void {
    this.#bits[at >>> 5]! |= 1 << (at & 31);
  }

  remove(at: number): void {
    this.#bits[at >>> 5]! &= ~(1 << (at & 31));
  }

  /** First beginning after an index, other than the end. */
  after(at: number): number {
    let index = (at + 1) >>> 5;
    let bits = this.#bits[index]! & (-1 << ((at + 1) & 31));
    while (bits === 0) bits = this.#bits[++index]!;
    return index * 32 + 31 - Math.clz32(bits & -bits);
  }

  /** Last beginning before an index, other than the first one. */
  before(at: number): number {
    let index = (at - 1) >>> 5;
    let bits = this.#bits[index]! & (-1 >>> (31 - ((at - 1) & 31)));
    while (bits === 0) bits = this.#bits[--index]!;
    return index * 32 + 31 - Math.clz32(bits);
  }
}
