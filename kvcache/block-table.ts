import type { AttentionWindow } from './attention-window.js';

/**
 * Places of a sequence's tokens: entry i is the block of positions i * tokensPerBlock and on.
 *
 *   tokensPerBlock 8, length 19           table  [ 4 | 9 | 2 ]
 *   position 17 = 2 * 8 + 1               slot   table[2] * 8 + 1 = 17
 *   position  9 = 1 * 8 + 1               slot   table[1] * 8 + 1 = 73
 *
 * With an attention window the entries take turns: see AttentionWindow.
 *
 * The array doubles as the sequence grows, up to the blocks of the longest sequence.
 */
export class BlockTable {
  readonly #tokensPerBlock: number;
  readonly #maxBlocks: number;
  readonly #window: AttentionWindow | null;
  #entries: Int32Array;
  #numBlocks = 0;
  #length = 0;

  constructor(tokensPerBlock: number, maxBlocks: number, window: AttentionWindow | null = null) {
    this.#tokensPerBlock = tokensPerBlock;
    this.#maxBlocks = maxBlocks;
    this.#window = window;
    this.#entries = new Int32Array(Math.min(4, maxBlocks));
  }

  /** Number of tokens that the table has to hold, those of the running step included. */
  get length(): number {
    return this.#length;
  }

  get numBlocks(): number {
    return this.#numBlocks;
  }

  /** Blocks in the order of positions, as long as none has been written over: a view, valid until the table grows. */
  get blocks(): Int32Array {
    return this.#entries.subarray(0, this.#numBlocks);
  }

  /** Returns a separate table that begins with the first `numBlocks` blocks of this one. */
  beginning(numBlocks: number): BlockTable {
    const table = new BlockTable(this.#tokensPerBlock, this.#maxBlocks, this.#window);
    table.#entries = new Int32Array(this.#entries.length);
    table.#entries.set(this.#entries.subarray(0, numBlocks));
    table.#numBlocks = numBlocks;
    table.#length = this.#length;
    return table;
  }

  append(block: number): void {
    if (this.#numBlocks === this.#entries.length) {
      const grown = new Int32Array(Math.min(2 * this.#numBlocks, this.#maxBlocks));
      grown.set(this.#entries);
      this.#entries = grown;
    }
    this.#entries[this.#numBlocks] = block;
    this.#numBlocks += 1;
  }

  /** Puts another block with the same content into entry `index`. */
  replace(index: number, block: number): void {
    this.#entries[index] = block;
  }

  /** Takes the last block out of the table, which must have one. */
  removeLast(): number {
    this.#numBlocks -= 1;
    return this.#entries[this.#numBlocks]!;
  }

  setLength(length: number): void {
    this.#length = length;
  }

  /** Writes the slots of positions [start, end) into target from `offset` on. In a window, positions can share one. */
  writeSlots(start: number, end: number, target: Int32Array, offset: number): void {
    const tokensPerBlock = this.#tokensPerBlock;
    let position = start;
    let cursor = offset;
    while (position < end) {
      const index = Math.floor(position / tokensPerBlock);
      const blockEnd = Math.min(end, (index + 1) * tokensPerBlock);
      const entry = this.#window?.entryOf(index) ?? index;
      let slot = this.#entries[entry]! * tokensPerBlock + (position - index * tokensPerBlock);
      for (; position < blockEnd; position += 1) {
        target[cursor] = slot;
        cursor += 1;
        slot += 1;
      }
    }
  }
}
