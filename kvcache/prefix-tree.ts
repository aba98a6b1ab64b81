import { chainHash, type PromptBlocks, type ReuseKey, rootHash } from './block-hashes.js';
import { BlockTokens } from './block-tokens.js';

export type { ReuseKey } from './block-hashes.js';

/** A full block in the tree: the keys and values of its tokens after those of all its ancestors. */
export interface PrefixNode {
  /** Node of the block before this one; null for a root. */
  readonly parent: PrefixNode | null;
  /** Place of the block's tokens among those of the tree; -1 for a root. */
  readonly place: number;
  /**
   * Number of the block, in the primary pool or after it in the secondary one; changes when it moves. -1 for
   * a root.
   */
  block: number;
  /** Identifies the tokens from the start of the sequence to the end of this block, salt and adapter included. */
  readonly hash: number;
  /** Name of the root among the roots. */
  readonly key: string;
  /** Children in the order of their tokens. */
  children: PrefixNode[];
  /** Number of children that lie in the primary pool: kept up to date by BlockCache. */
  primaryChildren: number;
  /**
   * Slot with a sequence's states at the end of this block; -1: none is kept. StateSnapshots keeps it up to
   * date.
   */
  state: number;
  /** Time of the last use, as a count of releases. Kept up to date by BlockCache. */
  releasedAt: number;
  /** 0 to 100: the lower, the sooner evicted. */
  priority: number;
  /** Time at which the priority falls back to the default; Infinity: never. */
  expiresAtMs: number;
}

export interface PrefixMatch {
  /** The longest chain of full blocks from the start. */
  nodes: PrefixNode[];
  /** The block with the longest common beginning after them; null if there is none. */
  partial: PrefixNode | null;
  /** Number of tokens that are common with `partial`, at least 1; 0 if there is none. */
  partialLength: number;
}

/**
 * Finds the full blocks that hold the beginning of a sequence: a radix tree whose edges are the tokens of one block.
 *
 *   tokensPerBlock 4          root(salt 0) --[a b c d]-- block 7 --[e f g h]-- block 2
 *                                       |                   +-----[e f x y]-- block 5
 *                                       +--[a b z z]-- block 1
 *
 *   a b c d e f g z      full 7, then 3 tokens of block 2
 *   a b q                2 tokens of block 7 (or of 1)
 *
 * Children are kept in the order of their tokens, so one binary search finds the equal block, and where there is
 * none, its two neighbours are those with the longest common beginning. Tokens are compared, not hashes: two prompts
 * never share a block by accident. A search costs O(blocks x tokensPerBlock x log children). The tokens of all blocks
 * lie in one array, since an array for each would take three times the memory of its tokens.
 */
export class PrefixTree {
  readonly #tokensPerBlock: number;
  readonly #roots = new Map<string, PrefixNode>();
  readonly #tokens: BlockTokens;

  constructor(tokensPerBlock: number) {
    this.#tokensPerBlock = tokensPerBlock;
    this.#tokens = new BlockTokens(tokensPerBlock);
  }

  get roots(): Iterable<PrefixNode> {
    return this.#roots.values();
  }

  /** The tokens of a block [tokensPerBlock]. */
  tokensOf(node: PrefixNode): Int32Array {
    return this.#tokens.at(node.place);
  }

  /** The root of a salt and an adapter: other sequences share nothing with these. It is kept once it has a child. */
  root(of: ReuseKey): PrefixNode {
    const key = rootKey(of);
    return this.#roots.get(key) ?? createRoot(of, key);
  }

  /** Finds the blocks that hold tokens[0, limit). */
  match(key: ReuseKey, tokens: Int32Array, limit: number): PrefixMatch {
    const size = this.#tokensPerBlock;
    const nodes: PrefixNode[] = [];
    let node = this.root(key);
    let start = 0;
    for (; start + size <= limit; start += size) {
      const child = this.child(node, tokens, start);
      if (child === null) break;
      nodes.push(child);
      node = child;
    }
    return { nodes, ...this.#longestBeginning(node, tokens, start, Math.min(size, limit - start)) };
  }

  /** The tokens from the start of the sequence to the end of the node's block, and the key of its root. */
  chainOf(node: PrefixNode): PromptBlocks {
    const chain: PrefixNode[] = [];
    for (let one: PrefixNode | null = node; one !== null && one.parent !== null; one = one.parent)
      chain.push(one);
    const tokens = new Int32Array(chain.length * this.#tokensPerBlock);
    for (const [i, one] of chain.reverse().entries())
      tokens.set(this.tokensOf(one), i * this.#tokensPerBlock);
    return { ...keyOfRoot(node.key), tokens };
  }

  /**
   * The full blocks of the tokens that are in the tree, and the hashes of those after them, as far as
   * `isElsewhere` knows them.
   */
  chainBeyond(
    key: ReuseKey,
    tokens: Int32Array,
    limit: number,
    isElsewhere: (hash: number) => boolean,
  ): { nodes: PrefixNode[]; beyond: number[] } {
    const size = this.#tokensPerBlock;
    const { nodes } = this.match(key, tokens, limit);
    const beyond: number[] = [];
    let hash = (nodes.at(-1) ?? this.root(key)).hash;
    for (let start = nodes.length * size; start + size <= limit; start += size) {
      hash = chainHash(hash, tokens, start, size);
      if (!isElsewhere(hash)) break;
      beyond.push(hash);
    }
    return { nodes, beyond };
  }

  /** The child that holds tokens[start, start + tokensPerBlock), or null. */
  child(node: PrefixNode, tokens: Int32Array, start: number): PrefixNode | null {
    const size = this.#tokensPerBlock;
    const found = node.children[this.#lowerBound(node.children, tokens, start, size)];
    if (!found) return null;
    return this.#tokens.commonLength(found.place, tokens, start, size) === size ? found : null;
  }

  /**
   * The hash of the first full block of tokens[0, length) that is not in the tree, or null if all are; and the last block before it that
   * does not hold the last token, or null.
   */
  firstMissing(
    key: ReuseKey,
    tokens: Int32Array,
    length: number,
  ): { hash: number | null; last: PrefixNode | null } {
    const size = this.#tokensPerBlock;
    let node = this.root(key);
    let last: PrefixNode | null = null;
    for (let start = 0; start + size <= length; start += size) {
      const child = this.child(node, tokens, start);
      if (child === null) return { hash: chainHash(node.hash, tokens, start, size), last };
      node = child;
      if (start + size < length) last = child;
    }
    return { hash: null, last };
  }

  /** Adds the block that holds tokens[start, start + tokensPerBlock). No child of `parent` may hold them already. */
  insert(
    parent: PrefixNode,
    tokens: Int32Array,
    start: number,
    block: number,
    priority: number,
    expiresAtMs: number,
  ): PrefixNode {
    const size = this.#tokensPerBlock;
    const node: PrefixNode = {
      parent,
      place: this.#tokens.add(tokens, start),
      block,
      hash: chainHash(parent.hash, tokens, start, size),
      key: parent.key,
      children: [],
      primaryChildren: 0,
      state: -1,
      releasedAt: 0,
      priority,
      expiresAtMs,
    };
    // Most have one child: a list of its own length is a tenth of what splice makes room for.
    if (parent.children.length === 0) parent.children = [node];
    else parent.children.splice(this.#lowerBound(parent.children, tokens, start, size), 0, node);
    if (parent.parent === null) this.#roots.set(parent.key, parent);
    return node;
  }

  /** Takes out a leaf, and its root with it if it was the root's last one. */
  remove(leaf: PrefixNode): void {
    const { parent } = leaf;
    if (parent === null || leaf.children.length > 0) {
      throw new Error(`Block ${leaf.block} is no leaf of the prefix tree; only leaves are taken out.`);
    }
    const index = this.#lowerBound(parent.children, this.tokensOf(leaf), 0, this.#tokensPerBlock);
    parent.children.splice(index, 1);
    this.#tokens.remove(leaf.place);
    if (parent.parent === null && parent.children.length === 0) this.#roots.delete(parent.key);
  }

  /** Takes out all nodes and returns them, each before those below it. */
  removeAll(): PrefixNode[] {
    const nodes = [...this.#roots.values()].flatMap(({ children }) => children);
    this.#roots.clear();
    this.#tokens.clear();
    for (let index = 0; index < nodes.length; index += 1) {
      for (const child of nodes[index]!.children) nodes.push(child);
    }
    return nodes;
  }

  /** Index of the first child whose first tokens are not less than tokens[start, start + length). */
  #lowerBound(children: readonly PrefixNode[], tokens: Int32Array, start: number, length: number): number {
    let low = 0;
    let high = children.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#tokens.isLess(children[middle]!.place, tokens, start, length)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * The child with the longest common beginning: one of the two neighbours of the place in the order, the right one if
   * both are equal.
   */
  #longestBeginning(
    node: PrefixNode,
    tokens: Int32Array,
    start: number,
    length: number,
  ): { partial: PrefixNode | null; partialLength: number } {
    let partial: PrefixNode | null = null;
    let partialLength = 0;
    if (length <= 0) return { partial, partialLength };
    const right = this.#lowerBound(node.children, tokens, start, length);
    for (const index of [right, right - 1]) {
      const neighbour = node.children[index];
      if (!neighbour) continue;
      const common = this.#tokens.commonLength(neighbour.place, tokens, start, length);
      if (common <= partialLength) continue;
      partial = neighbour;
      partialLength = common;
    }
    return { partial, partialLength };
  }
}

function rootKey({ salt, loraId = null }: ReuseKey): string {
  return loraId === null ? `${salt}` : `${salt} ${loraId}`;
}

function keyOfRoot(key: string): ReuseKey {
  const [salt = '0', loraId] = key.split(' ');
  return { salt: BigInt(salt), loraId: loraId === undefined ? null : BigInt(loraId) };
}

function createRoot({ salt, loraId = null }: ReuseKey, key: string): PrefixNode {
  return {
    parent: null,
    place: -1,
    block: -1,
    hash: rootHash({ salt, loraId }),
    key,
    children: [],
    primaryChildren: 0,
    state: -1,
    releasedAt: 0,
    priority: 0,
    expiresAtMs: Number.POSITIVE_INFINITY,
  };
}
