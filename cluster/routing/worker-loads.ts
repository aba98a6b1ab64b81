import type { WorkerIndex } from './block-index.js';

/** What a worker has to do, or by how much that changes. */
export interface Load {
  /** Requests that are there. */
  requests: number;
  /** Blocks of their prompts that are yet to be computed. */
  pendingBlocks: number;
}

/**
 * What workers have to do, by their numbers, in a tree whose nodes have the least of each of the two numbers below them: of ten thousand workers those with
 * much to do need not be looked at one by one.
 *
 *   requests           1              node n has 2 n and 2 n + 1 below it
 *                  2       1
 *   workers      2   3   4   1        the leaves, behind the nodes; where nobody is: Infinity
 */
export class WorkerLoads {
  #numLeaves = 1;
  #requests = new Float64Array(2).fill(Number.POSITIVE_INFINITY);
  #pendingBlocks = new Float64Array(2);

  requestsAt(worker: WorkerIndex): number {
    return this.#requests[this.#numLeaves + worker]!;
  }

  pendingBlocksAt(worker: WorkerIndex): number {
    return this.#pendingBlocks[this.#numLeaves + worker]!;
  }

  /** A worker comes that has nothing to do. */
  add(worker: WorkerIndex): void {
    while (worker >= this.#numLeaves) this.#grow();
    this.#set(worker, 0, 0);
  }

  remove(worker: WorkerIndex): void {
    this.#set(worker, Number.POSITIVE_INFINITY, 0);
  }

  /** Adds to what a worker has, or takes away. */
  change(worker: WorkerIndex, { requests, pendingBlocks }: Load): void {
    this.#set(worker, this.requestsAt(worker) + requests, this.pendingBlocksAt(worker) + pendingBlocks);
  }

  /**
   * Calls `visit` with the workers from `from` to `to` (excluded) in their order, without those of which `mayPass` says so.
   * @param mayPass is told the first worker of a row, and no more than each of the row has to do; true: none of them is of interest
   */
  walk(
    from: WorkerIndex,
    to: WorkerIndex,
    mayPass: (first: WorkerIndex, requests: number, pendingBlocks: number) => boolean,
    visit: (worker: WorkerIndex) => void,
  ): void {
    const walk = (node: number, first: WorkerIndex, count: number): void => {
      if (first >= to || first + count <= from) return;
      if (mayPass(Math.max(first, from), this.#requests[node]!, this.#pendingBlocks[node]!)) return;
      if (count === 1) {
        visit(first);
        return;
      }
      const half = count / 2;
      walk(2 * node, first, half);
      walk(2 * node + 1, first + half, half);
    };
    walk(1, 0, this.#numLeaves);
  }

  #set(worker: WorkerIndex, requests: number, pendingBlocks: number): void {
    let node = this.#numLeaves + worker;
    this.#requests[node] = requests;
    this.#pendingBlocks[node] = pendingBlocks;
    for (node >>= 1; node > 0; node >>= 1) this.#noteLeast(node);
  }

  #noteLeast(node: number): void {
    const [left, right] = [2 * node, 2 * node + 1];
    this.#requests[node] = Math.min(this.#requests[left]!, this.#requests[right]!);
    this.#pendingBlocks[node] = Math.min(this.#pendingBlocks[left]!, this.#pendingBlocks[right]!);
  }

  #grow(): void {
    const numLeaves = 2 * this.#numLeaves;
    const requests = new Float64Array(2 * numLeaves).fill(Number.POSITIVE_INFINITY);
    const pendingBlocks = new Float64Array(2 * numLeaves);
    requests.set(this.#requests.subarray(this.#numLeaves), numLeaves);
    pendingBlocks.set(this.#pendingBlocks.subarray(this.#numLeaves), numLeaves);
    this.#numLeaves = numLeaves;
    this.#requests = requests;
    this.#pendingBlocks = pendingBlocks;
    for (let node = numLeaves - 1; node > 0; node -= 1) this.#noteLeast(node);
  }
}
