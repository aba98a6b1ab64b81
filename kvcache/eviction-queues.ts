import { IndexedHeap } from './indexed-heap.js';
import type { PrefixNode } from './prefix-tree.js';

/** The state of nodes that the queues read. */
export interface NodeStates {
  /** Node of each block that is in the tree, indexed by block. */
  nodes: readonly (PrefixNode | undefined)[];
  isPrimary(node: PrefixNode): boolean;
  isHeld(node: PrefixNode): boolean;
}

/**
 * Queues of the nodes that can be evicted from each pool, in order: leaves of the primary part without
 * holders, whatever has been swapped out below them, and leaves of the secondary part.
 */
export class EvictionQueues {
  readonly #states: NodeStates;
  readonly #primary: IndexedHeap;
  readonly #secondary: IndexedHeap;
  #pinned: PrefixNode | null = null;

  constructor(numBlocks: number, states: NodeStates) {
    this.#states = states;
    const { nodes } = states;
    const goesFirst = (a: number, b: number) => isEvictedBefore(nodes[a]!, nodes[b]!);
    this.#primary = new IndexedHeap(numBlocks, goesFirst);
    this.#secondary = new IndexedHeap(numBlocks, goesFirst);
  }

  nextPrimary(): PrefixNode | undefined {
    return this.#states.nodes[this.#primary.peek()];
  }

  nextSecondary(): PrefixNode | undefined {
    return this.#states.nodes[this.#secondary.peek()];
  }

  has(block: number): boolean {
    return this.#primary.has(block) || this.#secondary.has(block);
  }

  /** Takes the node out of its queue; to be called before anything changes that determines its place there. */
  remove({ block }: PrefixNode): void {
    if (block < 0) return;
    this.#primary.remove(block);
    this.#secondary.remove(block);
  }

  /** Puts the node into the queue of its pool if it can be evicted, and takes it out otherwise. */
  update(node: PrefixNode): void {
    if (node.block < 0) return;
    this.remove(node);
    if (!this.#states.isPrimary(node)) {
      if (node.children.length === 0 && node !== this.#pinned) this.#secondary.push(node.block);
    } else if (node.primaryChildren === 0 && !this.#states.isHeld(node)) {
      this.#primary.push(node.block);
    }
  }

  /** Runs `use`, during which the node is not evicted from the secondary pool. */
  whilePinned(node: PrefixNode | null, use: () => void): void {
    this.#pinned = node;
    if (node) this.update(node);
    use();
    this.#pinned = null;
    if (node && this.#states.nodes[node.block] === node) this.update(node);
  }
}

/** True if a goes before b: the lower priority goes first, and of equal ones the one released longest ago. */
export function isEvictedBefore(a: PrefixNode, b: PrefixNode): boolean {
  return a.priority === b.priority ? a.releasedAt < b.releasedAt : a.priority < b.priority;
}
