/** A block as the naive pool knows it: who holds it, and for which beginning of a sequence it is kept. */
export interface NaiveBlock {
  holders: number;
  /** All tokens from the start of the sequence to the end of the block, and its salt; null: not kept. */
  key: string | null;
  releasedAt: number;
}

export interface Found {
  blocks: NaiveBlock[];
  reusedTokens: number;
  reusedBlocks: number;
}

/** Two kept blocks begin alike with the same number of tokens, and nothing says which of them is reused. */
export class Ambiguous extends Error {}

const keyOf = (salt: string, tokens: readonly string[], length: number) =>
  `${salt}:${tokens.slice(0, length).join(',')}`;

/**
 * Blocks as sets and lists, every question answered by looking at all of them. Nothing is kept up to date between two
 * questions, so that nothing can be kept up to date wrongly.
 */
export class NaivePool {
  readonly #numBlocks: number;
  readonly #size: number;
  /** Held or kept; all others are empty. */
  readonly #blocks = new Set<NaiveBlock>();
  #releases = 0;

  constructor(numBlocks: number, tokensPerBlock: number) {
    this.#numBlocks = numBlocks;
    this.#size = tokensPerBlock;
  }

  get used(): number {
    return [...this.#blocks].filter(({ holders }) => holders > 0).length;
  }

  /** Empty, or kept and held by no request. */
  get free(): number {
    return this.#numBlocks - this.used;
  }

  isKept(salt: string, tokens: readonly string[], length: number): boolean {
    return this.#kept(keyOf(salt, tokens, length)) !== undefined;
  }

  /** A block for one holder; where none is empty, the leaf that was released longest ago goes. */
  take(): NaiveBlock {
    if (this.#blocks.size === this.#numBlocks) {
      const leaves = [...this.#blocks].filter((block) => this.#isUnusedLeaf(block));
      const oldest = Math.min(...leaves.map(({ releasedAt }) => releasedAt));
      const evicted = leaves.find(({ releasedAt }) => releasedAt === oldest);
      if (!evicted) throw new Error('The naive pool is empty.');
      this.#blocks.delete(evicted);
    }
    const block: NaiveBlock = { holders: 1, key: null, releasedAt: -1 };
    this.#blocks.add(block);
    return block;
  }

  release(block: NaiveBlock): void {
    block.holders -= 1;
    if (block.holders > 0) return;
    if (block.key === null) this.#blocks.delete(block);
    this.#noteRelease(block);
  }

  /** Tail first. */
  releaseAll(blocks: readonly NaiveBlock[]): void {
    for (const block of blocks.toReversed()) this.release(block);
  }

  /**
   * The blocks with which a sequence of these tokens begins; its last token is not looked for. A block of which only
   * the beginning is of use is copied, and then counts as used now; it is taken over where all that is free is needed
   * for the `numBlocks` that the sequence is to have.
   */
  find(salt: string, tokens: readonly string[], numBlocks: number): Found {
    const size = this.#size;
    const wanted = tokens.slice(0, -1);
    const blocks: NaiveBlock[] = [];
    for (let end = size; end <= wanted.length; end += size) {
      const kept = this.#kept(keyOf(salt, wanted, end));
      if (!kept) break;
      kept.holders += 1;
      blocks.push(kept);
    }
    const reusedBlocks = blocks.length;
    const start = reusedBlocks * size;
    const { block, common } = this.#bestBeginning(salt, wanted, start);
    if (block) {
      if (this.#isUnusedLeaf(block) && numBlocks - reusedBlocks >= this.free) {
        block.key = null;
        block.holders = 1;
        blocks.push(block);
      } else {
        this.#noteRelease(block);
        blocks.push(this.take());
      }
    }
    return { blocks, reusedBlocks, reusedTokens: start + common };
  }

  /** Keeps the full blocks of the first `length` tokens; gives up those that are kept already for the kept ones. */
  keep(salt: string, tokens: readonly string[], length: number, blocks: NaiveBlock[]): void {
    for (let index = 0; (index + 1) * this.#size <= length; index += 1) {
      const key = keyOf(salt, tokens, (index + 1) * this.#size);
      const kept = this.#kept(key);
      const own = blocks[index]!;
      if (kept === own) continue;
      if (kept) {
        kept.holders += 1;
        blocks[index] = kept;
        this.release(own);
      } else {
        own.key = key;
      }
    }
  }

  #noteRelease(block: NaiveBlock): void {
    block.releasedAt = this.#releases;
    this.#releases += 1;
  }

  #kept(key: string): NaiveBlock | undefined {
    return [...this.#blocks].find((block) => block.key === key);
  }

  #isUnusedLeaf({ holders, key }: NaiveBlock): boolean {
    if (holders > 0 || key === null) return false;
    return ![...this.#blocks].some((other) => other.key?.startsWith(`${key},`));
  }

  #bestBeginning(salt: string, wanted: readonly string[], start: number) {
    const before = keyOf(salt, wanted, start);
    let best: NaiveBlock | null = null;
    let common = 0;
    let ties = 0;
    for (const block of this.#blocks) {
      const tokens = block.key?.slice(salt.length + 1).split(',') ?? [];
      if (block.key === null || tokens.length !== start + this.#size) continue;
      if (keyOf(block.key.slice(0, block.key.indexOf(':')), tokens, start) !== before) continue;
      let equal = 0;
      while (
        start + equal < wanted.length &&
        equal < this.#size &&
        tokens[start + equal] === wanted[start + equal]
      )
        equal += 1;
      if (equal === common && equal > 0) ties += 1;
      if (equal <= common) continue;
      [best, common, ties] = [block, equal, 0];
    }
    if (ties > 0) throw new Ambiguous();
    return { block: best, common };
  }
}
