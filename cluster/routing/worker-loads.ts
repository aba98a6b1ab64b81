import type { WorkerIndex } from './block-index.js';
import { RowHeap } from './row-heap.js';

/** What a worker has to do, or by how much that changes. */
export interface Load {
  /** Requests that are there. */
  requests: number;
  /** Blocks of their prompts that are yet to be computed. */
  pendingBlocks: number;
}

/** A search among workers, those of the least cost first. */
export interface LeastFirst {
  /** Of a worker with so much to do; grows with both numbers. */
  costOf: (requests: number, pendingBlocks: number) => number;
  /** True: neither this worker, if it costs no less, nor any that comes after it is of interest. */
  mayStop: (worker: WorkerIndex, cost: number) => boolean;
  visit: (worker: WorkerIndex) => void;
  /** Most workers that are visited. */
  most: number;
}

/**
 * What workers have to do, by their numbers, in a tree whose nodes have the least of each of the two numbers below them: of ten thousand workers those with
 * much to do need not be looked at one by one.
 *
 *   requests           1              node n has 2 n and 2 n + 1 below it
 *                  2       1
 *   workers      2   3   4   1        the leaves, after the nodes; where no worker is, or none takes anything: Infinity
 */
export class WorkerLoads {
  #numLeaves = 1;
  /** Of nodes and leaves. */
  #requests = new Float64Array(2).fill(Number.POSITIVE_INFINITY);
  #pendingBlocks = new Float64Array(2).fill(Number.POSITIVE_INFINITY);
  /** Of workers, whether they take anything or not. */
  #ownRequests = new Float64Array(1).fill(Number.POSITIVE_INFINITY);
  #ownPendingBlocks = new Float64Array(1);
  #isOpen = new Uint8Array(1);
  #numOpen = 0;
  readonly #rows = new RowHeap();

  /** Number of workers that take requests. */
  get numOpen(): number {
    return this.#numOpen;
  }

  requestsAt(worker: WorkerIndex): number {
    return this.#ownRequests[worker]!;
  }

  pendingBlocksAt(worker: WorkerIndex): number {
    return this.#ownPendingBlocks[worker]!;
  }

  /** It takes requests: `walk` visits it. */
  isOpen(worker: WorkerIndex): boolean {
    return this.#isOpen[worker] === 1;
  }

  /** A worker comes that has nothing to do. */
  add(worker: WorkerIndex): void {
    while (worker >= this.#numLeaves) this.#grow();
    this.#noteOpen(worker, true);
    this.#set(worker, 0, 0);
  }

  remove(worker: WorkerIndex): void {
    this.#noteOpen(worker, false);
    this.#set(worker, Number.POSITIVE_INFINITY, 0);
  }

  setOpen(worker: WorkerIndex, isOpen: boolean): void {
    if (this.isOpen(worker) === isOpen) return;
    this.#noteOpen(worker, isOpen);
    this.#set(worker, this.requestsAt(worker), this.pendingBlocksAt(worker));
  }

  #noteOpen(worker: WorkerIndex, isOpen: boolean): void {
    this.#numOpen += Number(isOpen) - this.#isOpen[worker]!;
    this.#isOpen[worker] = Number(isOpen);
  }

  /** Adds to what a worker has, or takes away. */
  change(worker: WorkerIndex, { requests, pendingBlocks }: Load): void {
    this.#set(worker, this.requestsAt(worker) + requests, this.pendingBlocksAt(worker) + pendingBlocks);
  }

  /**
   * Calls `visit` with the open workers from `from` to `to` (excluded) in their order, without those of which `mayPass` says so.
   * @param mayPass receives the first worker of a row, and the lowest numbers of requests and pending blocks
   * in it; true: none of them is of interest
   */
  walk(
    from: WorkerIndex,
    to: WorkerIndex,
    mayPass: (first: WorkerIndex, requests: number, pendingBlocks: number) => boolean,
    visit: (worker: WorkerIndex) => void,
  ): void {
    const walk = (node: number, first: WorkerIndex, count: number): void => {
      if (first >= to || first + count <= from || this.#requests[node] === Number.POSITIVE_INFINITY) return;
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

  /**
   * Visits open workers in the order of their costs; of those that cost the same the first one from `from` on, which is followed by those
   * in front of it. @returns false: there are more that may be of interest
   */
  leastFirst(from: WorkerIndex, { costOf, mayStop, visit, most }: LeastFirst): boolean {
    const rows = this.#rows;
    const firstOf = (node: number) => {
      const level = 31 - Math.clz32(node);
      const count = this.#numLeaves >> level;
      const first = (node - (1 << level)) * count;
      return first <= from && from < first + count ? from : first;
    };
    const add = (node: number) => {
      const requests = this.#requests[node]!;
      if (requests === Number.POSITIVE_INFINITY) return;
      const first = firstOf(node);
      const place = first < from ? first - from + this.#numLeaves : first - from;
      rows.push(costOf(requests, this.#pendingBlocks[node]!), place, node);
    };
    rows.clear();
    add(1);
    for (let visited = 0; rows.size > 0; ) {
      const cost = rows.leastCost!;
      const node = rows.pop();
      if (mayStop(firstOf(node), cost)) return true;
      if (node < this.#numLeaves) {
        add(2 * node);
        add(2 * node + 1);
        continue;
      }
      if (visited === most) return false;
      visited += 1;
      visit(node - this.#numLeaves);
    }
    return true;
  }

  #set(worker: WorkerIndex, requests: number, pendingBlocks: number): void {
    this.#ownRequests[worker] = requests;
    this.#ownPendingBlocks[worker] = pendingBlocks;
    let node = this.#numLeaves + worker;
    const shown = this.isOpen(worker) ? requests : Number.POSITIVE_INFINITY;
    const shownBlocks = this.isOpen(worker) ? pendingBlocks : Number.POSITIVE_INFINITY;
    if (this.#requests[node] === shown && this.#pendingBlocks[node] === shownBlocks) return;
    this.#requests[node] = shown;
    this.#pendingBlocks[node] = shownBlocks;
    for (node >>= 1; node > 0; node >>= 1) this.#noteLeast(node);
  }

  #noteLeast(node: number): void {
    const [left, right] = [2 * node, 2 * node + 1];
    this.#requests[node] = Math.min(this.#requests[left]!, this.#requests[right]!);
    this.#pendingBlocks[node] = Math.min(this.#pendingBlocks[left]!, this.#pendingBlocks[right]!);
  }

  #grow(): void {
    const before = this.#numLeaves;
    this.#numLeaves = 2 * before;
    this.#ownRequests = longer(this.#ownRequests, Number.POSITIVE_INFINITY);
    this.#ownPendingBlocks = longer(this.#ownPendingBlocks, 0);
    const isOpen = new Uint8Array(this.#numLeaves);
    isOpen.set(this.#isOpen);
    this.#isOpen = isOpen;
    const requests = new Float64Array(2 * this.#numLeaves).fill(Number.POSITIVE_INFINITY);
    const pendingBlocks = new Float64Array(2 * this.#numLeaves).fill(Number.POSITIVE_INFINITY);
    requests.set(this.#requests.subarray(before), this.#numLeaves);
    pendingBlocks.set(this.#pendingBlocks.subarray(before), this.#numLeaves);
    this.#requests = requests;
    this.#pendingBlocks = pendingBlocks;
    for (let node = this.#numLeaves - 1; node > 0; node -= 1) this.#noteLeast(node);
  }
}

function longer(column: Float64Array<ArrayBuffer>, filler: number): Float64Array<ArrayBuffer> {
  const made = new Float64Array(2 * column.length).fill(filler);
  made.set(column);
  return made;
}
