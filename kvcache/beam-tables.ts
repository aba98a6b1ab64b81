import type { BlockTable } from './block-table.js';

/** Operations of the pool that a request's tables use. */
export interface BlockSource {
  /** Takes a new block with one holder, to be zeroed. */
  take(): number;
  /** Adds a holder to a block that is already held. */
  share(block: number): void;
  /** Removes one holder from a block. */
  release(block: number): void;
  /** Gives the target the content of the source before the next step. */
  copy(source: number, target: number): void;
}

/**
 * The block tables of one request, one for each sequence that it generates (beams, or samples from one prompt). All are
 * of the same length. Blocks that are full are shared, by the prompt or by a common ancestor; the last block that is
 * not full belongs to one table alone, since each sequence writes its own tokens into it.
 *
 *   tokensPerBlock 4, prompt 10, 13 tokens, 3 beams
 *
 *     beam 0   [ 7 | 2 | 5 | 9 ]       7 and 2 are full of prompt: shared, and held three times
 *     beam 1   [ 7 | 2 | 4 | 8 ]
 *     beam 2   [ 7 | 2 | 1 | 3 ]       8 blocks
 *
 *   the best three go on from beams 1, 1 and 0: fork([1, 1, 0])
 *
 *     beam 0   [ 7 | 2 | 4 | 8 ]       the first that goes on from 1 keeps its last block
 *     beam 1   [ 7 | 2 | 4 | 3 ]       8 is copied to 3, the last block of beam 2, which no beam continues
 *     beam 2   [ 7 | 2 | 5 | 9 ]       1 is free again: 7 blocks
 *
 * So a fork takes no block from the pool, and the tables never hold more blocks than they would without sharing
 * generated tokens, which is the number that the schedulers count with.
 */
export class BeamTables {
  readonly #source: BlockSource;
  #tables: BlockTable[];
  /** Number of tables that name each block; empty as long as there is one table. */
  readonly #uses = new Map<number, number>();

  /** `first` holds the whole prompt's blocks, of which the first `numShared` are full of prompt tokens. */
  constructor(first: BlockTable, width: number, numShared: number, source: BlockSource) {
    this.#source = source;
    this.#tables = [first];
    if (width === 1) return;
    for (const block of first.blocks) this.#uses.set(block, 1);
    for (let index = 1; index < width; index += 1) {
      const table = first.beginning(numShared);
      for (const block of table.blocks) this.#share(block);
      while (table.numBlocks < first.numBlocks) table.append(this.#takeOwn());
      this.#tables.push(table);
    }
  }

  /** Blocks that a request of this width holds beyond its first table of `tableBlocks`, before anything is forked. */
  static numBeside(width: number, numShared: number, tableBlocks: number): number {
    return (width - 1) * Math.max(0, tableBlocks - numShared);
  }

  get width(): number {
    return this.#tables.length;
  }

  get first(): BlockTable {
    return this.#tables[0]!;
  }

  get all(): readonly BlockTable[] {
    return this.#tables;
  }

  /** Number of blocks held, each counted once. */
  get numBlocks(): number {
    return this.width === 1 ? this.first.numBlocks : this.#uses.size;
  }

  /** Makes every table have `tableBlocks` blocks and cover `length` tokens, never fewer than before. */
  grow(tableBlocks: number, length: number): void {
    for (const table of this.#tables) {
      while (table.numBlocks < tableBlocks) table.append(this.#takeOwn());
      table.setLength(Math.max(table.length, length));
    }
  }

  /** Releases the blocks after the first `tableBlocks` of each table. */
  trim(tableBlocks: number, length: number): void {
    for (const table of this.#tables) {
      while (table.numBlocks > tableBlocks) this.#release(table.removeLast());
      table.setLength(length);
    }
  }

  /**
   * Table i goes on from the former table parents[i]; tables from which none goes on are given back. `hasPartial`: the
   * last blocks are not full.
   */
  fork(parents: readonly number[], hasPartial: boolean): void {
    const old = this.#tables;
    if (parents.length === old.length && parents.every((parent, index) => parent === index)) return;
    const isContinued = old.map(() => false);
    const children = parents.map((parent) => {
      const isFirst = !isContinued[parent];
      isContinued[parent] = true;
      return { parent: old[parent]!, isFirst };
    });
    const spare = hasPartial ? old.filter((_, index) => !isContinued[index]).map(lastBlock) : [];
    this.#tables = children.map(({ parent, isFirst }) => {
      if (isFirst) return parent;
      const numFull = parent.numBlocks - (hasPartial ? 1 : 0);
      const table = parent.beginning(numFull);
      for (const block of table.blocks) this.#share(block);
      if (hasPartial) {
        const own = spare.shift()!;
        this.#source.copy(lastBlock(parent), own);
        table.append(own);
      }
      table.setLength(parent.length);
      return table;
    });
    for (const block of spare) this.#release(block);
    for (const [index, table] of old.entries()) {
      if (isContinued[index]) continue;
      const { blocks } = table;
      for (let entry = blocks.length - (hasPartial ? 2 : 1); entry >= 0; entry -= 1)
        this.#release(blocks[entry]!);
    }
    if (this.width === 1) this.#uses.clear();
  }

  /** Puts another block with the same content in the place of `own`, which is entry `index` of the first table. */
  exchange(index: number, other: number): void {
    const own = this.first.blocks[index]!;
    for (const table of this.#tables) {
      if (table.blocks[index] !== own) continue;
      table.replace(index, other);
      this.#share(other);
      this.#release(own);
    }
  }

  /** Gives all blocks back, tails first: other sequences may share the head of a sequence, so it goes last. */
  releaseAll(): void {
    for (let index = this.width - 1; index >= 0; index -= 1) {
      const { blocks } = this.#tables[index]!;
      for (let entry = blocks.length - 1; entry >= 0; entry -= 1) this.#release(blocks[entry]!);
    }
  }

  #takeOwn(): number {
    const block = this.#source.take();
    if (this.#isCounted) this.#uses.set(block, 1);
    return block;
  }

  #share(block: number): void {
    this.#source.share(block);
    if (this.#isCounted) this.#uses.set(block, (this.#uses.get(block) ?? 0) + 1);
  }

  #release(block: number): void {
    this.#source.release(block);
    const uses = this.#uses.get(block) ?? 0;
    if (uses > 1) this.#uses.set(block, uses - 1);
    else this.#uses.delete(block);
  }

  get #isCounted(): boolean {
    return this.#uses.size > 0;
  }
}

function lastBlock({ blocks }: BlockTable): number {
  return blocks.at(-1)!;
}
