import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { CodeTable } from './code-table.js';
import {
  COUNT,
  NEXT_OF_BLOCK,
  NEXT_OF_WORKER,
  PairRows,
  PREVIOUS_OF_BLOCK,
  PREVIOUS_OF_WORKER,
  STATE,
  WORKER,
} from './pair-rows.js';

/** Number of a worker, small, and its own as long as it is there. */
export type WorkerIndex = number;

/** Most blocks that are noted, over all indices that have it. */
export class BlockBound {
  readonly most: number;
  used = 0;

  constructor(most: number) {
    this.most = most;
  }
}

const NONE = -1;

/**
 * Which workers hold which blocks, by the blocks' hashes: the union of what their events have reported. A
 * hash stands for all tokens up to the block's end, so a worker that holds a block is of use only if it holds
 * those before it too.
 *
 *   prompt   h1  h2  h3  h4
 *   A         x   x   x          3 blocks
 *   B         x       x   x      1 block: without h2 it has to begin there
 *   C                            0
 *
 * Where a model keeps states, a prompt can continue only after a block whose states are kept, too.
 *
 * Each x is a pair of a block and a worker, a row of some 50 bytes with its places in two tables. A pair is in the list of its
 * block and in that of its worker:
 *
 *   pair       0    1    2    3    4    5
 *   block      h1   h2   h3   h1   h3   h4
 *   worker     A    A    A    B    B    B
 *   of h1      0 <-> 3                         of A   0 <-> 1 <-> 2
 */
export class BlockIndex {
  readonly #bound: BlockBound;
  readonly #byPair = new CodeTable();
  /** First pair of each block. */
  readonly #byBlock = new CodeTable();
  readonly #rows = new PairRows();
  /** Pairs that are free are a list by NEXT_OF_BLOCK. */
  #firstFree = NONE;
  readonly #firstOfWorker: number[] = [];
  readonly #sizes: number[] = [];
  /** Workers whose model keeps states, as far as that is known. */
  readonly #keepers = new Set<WorkerIndex>();
  #size = 0;

  /** @param bound most blocks that are noted, over all workers: what comes when it is full is not noted */
  constructor(bound: number | BlockBound) {
    this.#bound = typeof bound === 'number' ? new BlockBound(bound) : bound;
  }

  /** Number of blocks over all workers; one that several hold counts for each. */
  get size(): number {
    return this.#size;
  }

  /** Number of blocks of one worker. */
  sizeOf(worker: WorkerIndex): number {
    return this.#sizes[worker] ?? 0;
  }

  holds(worker: WorkerIndex, hash: number): boolean {
    return this.#slotOf(worker, hash) >= 0;
  }

  /**
   * True where the worker's model keeps states: a prompt can continue there only from a block after which
   * they are kept.
   */
  keepsStates(worker: WorkerIndex): boolean {
    return this.#keepers.has(worker);
  }

  hasState(worker: WorkerIndex, hash: number): boolean {
    const slot = this.#slotOf(worker, hash);
    return slot >= 0 && this.#rows.get(this.#byPair.valueAt(slot), STATE) === 1;
  }

  /** A pair of the block, for `next` and `workerOf`; -1: no worker holds it. */
  first(hash: number): number {
    const slot = this.#slotOfBlock(hash);
    return slot < 0 ? NONE : this.#byBlock.valueAt(slot);
  }

  /** The next pair of the same block; -1: there is none. */
  next(pair: number): number {
    return this.#rows.get(pair, NEXT_OF_BLOCK);
  }

  workerOf(pair: number): WorkerIndex {
    return this.#rows.get(pair, WORKER);
  }

  /** Notes what a worker's cache has reported, in order. */
  note(worker: WorkerIndex, events: readonly KvCacheEvent[]): void {
    for (const { data } of events) {
      if (data.type === 'created') this.clear(worker);
      if (data.type === 'stored') for (const { blockHash } of data.blocks) this.add(worker, blockHash);
      if (data.type === 'removed') for (const hash of data.blockHashes) this.remove(worker, hash);
      if (data.type === 'updated' && 'hasState' in data)
        this.noteState(worker, data.blockHash, data.hasState.newValue);
    }
  }

  add(worker: WorkerIndex, hash: number): void {
    if (this.#bound.used >= this.#bound.most || this.holds(worker, hash)) return;
    this.#insert(worker, hash);
  }

  /** Notes whether the worker, whose model keeps states, has those after a block. */
  noteState(worker: WorkerIndex, hash: number, hasState: boolean): void {
    this.#keepers.add(worker);
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#rows.set(this.#byPair.valueAt(slot), STATE, hasState ? 1 : 0);
  }

  /** Notes a block once more: it is forgotten after as many calls of removeOnce. */
  addAgain(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#count(this.#byPair.valueAt(slot), 1);
    else this.#insert(worker, hash);
  }

  removeOnce(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot < 0) return;
    const pair = this.#byPair.valueAt(slot);
    if (this.#rows.get(pair, COUNT) > 1) this.#count(pair, -1);
    else this.#delete(pair, slot);
  }

  #count(pair: number, change: 1 | -1): void {
    this.#rows.set(pair, COUNT, this.#rows.get(pair, COUNT) + change);
  }

  remove(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#delete(this.#byPair.valueAt(slot), slot);
  }

  /** Forgets all blocks of a worker: it has died, or events of it were lost. */
  clear(worker: WorkerIndex): void {
    this.#keepers.delete(worker);
    for (let pair = this.#firstOfWorker[worker] ?? NONE; pair !== NONE; ) {
      const next = this.#rows.get(pair, NEXT_OF_WORKER);
      this.#delete(pair, this.#slotOf(worker, this.#rows.hashOf(pair)));
      pair = next;
    }
  }

  #slotOf(worker: WorkerIndex, hash: number): number {
    const table = this.#byPair;
    for (let slot = table.find(codeOf(hash, worker)); slot >= 0; slot = table.findNext(slot)) {
      const pair = table.valueAt(slot);
      if (this.#rows.hashOf(pair) === hash && this.#rows.get(pair, WORKER) === worker) return slot;
    }
    return NONE;
  }

  #slotOfBlock(hash: number): number {
    const table = this.#byBlock;
    for (let slot = table.find(codeOf(hash, NONE)); slot >= 0; slot = table.findNext(slot)) {
      if (this.#rows.hashOf(table.valueAt(slot)) === hash) return slot;
    }
    return NONE;
  }

  #insert(worker: WorkerIndex, hash: number): void {
    const rows = this.#rows;
    const pair = this.#takePair();
    rows.setHash(pair, hash);
    rows.set(pair, WORKER, worker);
    rows.set(pair, COUNT, 1);
    rows.set(pair, STATE, 0);
    this.#byPair.add(codeOf(hash, worker), pair);
    const slot = this.#slotOfBlock(hash);
    const nextOfBlock = slot < 0 ? NONE : this.#byBlock.valueAt(slot);
    if (slot < 0) this.#byBlock.add(codeOf(hash, NONE), pair);
    else this.#byBlock.setValue(slot, pair);
    link(rows, NEXT_OF_BLOCK, PREVIOUS_OF_BLOCK, pair, nextOfBlock);
    link(rows, NEXT_OF_WORKER, PREVIOUS_OF_WORKER, pair, this.#firstOfWorker[worker] ?? NONE);
    this.#firstOfWorker[worker] = pair;
    this.#sizes[worker] = this.sizeOf(worker) + 1;
    this.#size += 1;
    this.#bound.used += 1;
  }

  /** @param slot of the pair in its table */
  #delete(pair: number, slot: number): void {
    const rows = this.#rows;
    const worker = rows.get(pair, WORKER);
    this.#byPair.remove(slot);
    if (rows.get(pair, PREVIOUS_OF_BLOCK) === NONE) {
      const first = this.#slotOfBlock(rows.hashOf(pair));
      const next = rows.get(pair, NEXT_OF_BLOCK);
      if (next === NONE) this.#byBlock.remove(first);
      else this.#byBlock.setValue(first, next);
    }
    if (rows.get(pair, PREVIOUS_OF_WORKER) === NONE)
      this.#firstOfWorker[worker] = rows.get(pair, NEXT_OF_WORKER);
    unlink(rows, NEXT_OF_BLOCK, PREVIOUS_OF_BLOCK, pair);
    unlink(rows, NEXT_OF_WORKER, PREVIOUS_OF_WORKER, pair);
    rows.set(pair, NEXT_OF_BLOCK, this.#firstFree);
    this.#firstFree = pair;
    this.#sizes[worker]! -= 1;
    this.#size -= 1;
    this.#bound.used -= 1;
  }

  #takePair(): number {
    const free = this.#firstFree;
    if (free === NONE) return this.#rows.add();
    this.#firstFree = this.#rows.get(free, NEXT_OF_BLOCK);
    return free;
  }
}

/** The two fields of a list. */
type Next = typeof NEXT_OF_BLOCK | typeof NEXT_OF_WORKER;
type Previous = typeof PREVIOUS_OF_BLOCK | typeof PREVIOUS_OF_WORKER;

/** Puts a pair before the first one of a list. */
function link(rows: PairRows, next: Next, previous: Previous, pair: number, first: number): void {
  rows.set(pair, next, first);
  rows.set(pair, previous, NONE);
  if (first !== NONE) rows.set(first, previous, pair);
}

function unlink(rows: PairRows, next: Next, previous: Previous, pair: number): void {
  const before = rows.get(pair, previous);
  const behind = rows.get(pair, next);
  if (before !== NONE) rows.set(before, next, behind);
  if (behind !== NONE) rows.set(behind, previous, before);
}

/** Code of a block, or of a block at a worker. */
function codeOf(hash: number, worker: WorkerIndex): number {
  let code = Math.imul((hash | 0) ^ Math.imul(worker + 1, 0x9e3779b1), 0x85ebca6b);
  code = Math.imul(code ^ (code >>> 15), 0xc2b2ae35);
  return code ^ (code >>> 16);
}
