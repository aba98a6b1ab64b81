import type { PrefixNode } from './prefix-tree.js';

/**
 * Cached blocks that may be written to a disk and have not been yet, in the order in which they became cached: each of them after the
 * blocks in front of it. A block that is evicted before its turn is not written.
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

  /** Takes the oldest ones that are wanted, at most so many; those in front of them that are not are forgotten. */
  take(most: number, isWanted: (node: PrefixNode) => boolean): PrefixNode[] {
    const taken: PrefixNode[] = [];
    for (const node of this.#nodes) {
      if (taken.length === most) break;
      this.#nodes.delete(node);
      if (isWanted(node)) taken.push(node);
    }
    return taken;
  }
}
