import { IndexedHeap } from './indexed-heap.js';
import type { PrefixNode } from './prefix-tree.js';

/** Nodes whose priority holds for a limited time, the next one to end first. */
export class PriorityExpiry {
  readonly #nodes: readonly (PrefixNode | undefined)[];
  readonly #heap: IndexedHeap;
  #nowMs = 0;

  /** @param nodes node of each block that is in the tree, indexed by block */
  constructor(numBlocks: number, nodes: readonly (PrefixNode | undefined)[]) {
    this.#nodes = nodes;
    this.#heap = new IndexedHeap(numBlocks, (a, b) => nodes[a]!.expiresAtMs < nodes[b]!.expiresAtMs);
  }

  /** Lets the node's priority end after durationMs; undefined: never. */
  set(node: PrefixNode, durationMs: number | undefined): void {
    this.remove(node);
    node.expiresAtMs = this.#nowMs + (durationMs ?? Number.POSITIVE_INFINITY);
    this.add(node);
  }

  /** Starts to watch the node's time, if it has one; also to be called after it has moved to another block. */
  add(node: PrefixNode): void {
    if (Number.isFinite(node.expiresAtMs)) this.#heap.push(node.block);
  }

  /** Forgets the node; to be called before it leaves its block. */
  remove({ block }: PrefixNode): void {
    this.#heap.remove(block);
  }

  /** Sets the time; returns the nodes whose priority has ended. */
  advance(nowMs: number): PrefixNode[] {
    this.#nowMs = nowMs;
    const ended: PrefixNode[] = [];
    for (let block = this.#heap.peek(); block >= 0; block = this.#heap.peek()) {
      const node = this.#nodes[block]!;
      if (node.expiresAtMs > nowMs) break;
      this.#heap.remove(block);
      node.expiresAtMs = Number.POSITIVE_INFINITY;
      ended.push(node);
    }
    return ended;
  }
}
