import type { PrefixNode } from './prefix-tree.js';

/**
 * Cached blocks that may be written to a disk and have not been yet, or that have got a snapshot of states since, in the order in which
 * they did: each of them after the blocks in front of it. A block that is evicted before its turn is not written.
 */
export class UnwrittenBlocks {
  readonly #nodes = new Set<PrefixNode>();

  get size(): number {
    return this.#nodes.size;
  }

  add(node: PrefixNode): void {
    this.#nodes.add(node);
  }

  /** The node leaves the tree. */
  remove(node: PrefixNode): void {
    this.#nodes.delete(node);
  }

  /** Takes the oldest one that is wanted; null: there is none. Those in front of it that are not are forgotten. */
  take(isWanted: (node: PrefixNode) => boolean): PrefixNode | null {
    for (const node of this.#nodes) {
      this.#nodes.delete(node);
      if (isWanted(node)) return node;
    }
    return null;
  }
}
