import { LeastTree, NO_VALUE } from './least-tree.js';

/** Merges of a BPE model, as the library keeps them. */
export interface Merges {
  /** Ranks of merges by the JSON of [left, right]; the lowest is applied first. */
  bpe_ranks: ReadonlyMap<string, number>;
  /** Suffix of the last symbol of a word. */
  end_of_word_suffix?: string | null | undefined;
}

/**
 * Symbols of a word when nothing in it can be merged any more, in order: each step applies the merge of lowest rank,
 * the leftmost of equal ones. The result is that of the library's `bpe`, which makes objects and texts of some 400
 * bytes for each character and keeps them until the word is done; here it takes five bytes a UTF-16 unit, for words of
 * any length.
 *
 * A symbol is known by where it begins: a bit for each character tells whether one begins there. For each symbol
 * followed by another one, the tree has the rank of the merge of both.
 *
 * @param word not empty
 */
export function* symbolsOf(word: string, merges: Merges): Generator<string> {
  const spelled = word + (merges.end_of_word_suffix || '');
  const starts = new Starts(spelled.length);
  for (let i = 0; i < word.length; i += characterLength(word, i)) starts.add(i);
  const ranks = new LeastTree(word.length);
  const rankAt = (left: number, right: number): number => {
    if (right === spelled.length) return NO_VALUE;
    const pair = [spelled.slice(left, right), spelled.slice(right, starts.after(right))];
    return merges.bpe_ranks.get(JSON.stringify(pair)) ?? NO_VALUE;
  };
  for (let start = 0; start < spelled.length; ) {
    const next = starts.after(start);
    ranks.setUnbuilt(start, rankAt(start, next));
    start = next;
  }
  ranks.build();
  for (let left = ranks.first(); left !== -1; left = ranks.first()) {
    const right = starts.after(left);
    starts.remove(right);
    ranks.set(right, NO_VALUE);
    ranks.set(left, rankAt(left, starts.after(left)));
    if (left === 0) continue;
    const previous = starts.before(left);
    ranks.set(previous, rankAt(previous, left));
  }
  for (let start = 0; start < spelled.length; ) {
    const end = starts.after(start);
    yield spelled.slice(start, end);
    start = end;
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

  /** First beginning behind an index, other than the end. */
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
