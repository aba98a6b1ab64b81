import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { CodeTable } from './code-table.js';

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
 * Which workers hold which blocks, by the blocks' hashes: the union of what their events have told. A hash stands for all tokens up to
 * the block's end, so whoever holds a block is of use only if it holds those before it too.
 *
 *   prompt   h1  h2  h3  h4
 *   A         x   x   x          3 blocks
 *   B         x       x   x      1 block: without h2 it has to begin there
 *   C                            0
 *
 * Where a model keeps states, a prompt can go on only after a block whose states are kept, too.
 *
 * Each x is a pair of a block and a worker, a row of columns, some 50 bytes with its places in two tables. A pair is in the list of its
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
  #hashes = new Float64Array(16);
  #workers = new Int32Array(16);
  /** 1: behind the block the worker keeps the states of sequences. */
  #states = new Uint8Array(16);
  /** How often a pair was noted by addAgain; 1 for one that was noted by add. */
  #counts = new Int32Array(16);
  #nextOfBlock = new Int32Array(16);
  #previousOfBlock = new Int32Array(16);
  #nextOfWorker = new Int32Array(16);
  #previousOfWorker = new Int32Array(16);
  /** Pairs that were used once; those that are free now are a list by #nextOfBlock. */
  #numPairs = 0;
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

  /** True where the worker's model keeps states: a prompt can go on there only from a block behind which they are kept. */
  keepsStates(worker: WorkerIndex): boolean {
    return this.#keepers.has(worker);
  }

  hasState(worker: WorkerIndex, hash: number): boolean {
    const slot = this.#slotOf(worker, hash);
    return slot >= 0 && this.#states[this.#byPair.valueAt(slot)] === 1;
  }

  /** A pair of the block, for `next` and `workerOf`; -1: nobody holds it. */
  first(hash: number): number {
    const slot = this.#slotOfBlock(hash);
    return slot < 0 ? NONE : this.#byBlock.valueAt(slot);
  }

  /** The next pair of the same block; -1: there is none. */
  next(pair: number): number {
    return this.#nextOfBlock[pair]!;
  }

  workerOf(pair: number): WorkerIndex {
    return this.#workers[pair]!;
  }

  /** Notes what a worker's cache has told, in its order. */
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

  /** Notes whether the worker, whose model keeps states, has those behind a block. */
  noteState(worker: WorkerIndex, hash: number, hasState: boolean): void {
    this.#keepers.add(worker);
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#states[this.#byPair.valueAt(slot)] = hasState ? 1 : 0;
  }

  /** Notes a block once more: it is forgotten after as many calls of removeOnce. */
  addAgain(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#counts[this.#byPair.valueAt(slot)]! += 1;
    else this.#insert(worker, hash);
  }

  removeOnce(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot < 0) return;
    const pair = this.#byPair.valueAt(slot);
    if (this.#counts[pair]! > 1) this.#counts[pair]! -= 1;
    else this.#delete(pair, slot);
  }

  remove(worker: WorkerIndex, hash: number): void {
    const slot = this.#slotOf(worker, hash);
    if (slot >= 0) this.#delete(this.#byPair.valueAt(slot), slot);
  }

  /** Forgets all blocks of a worker: it has died, or events of it were lost. */
  clear(worker: WorkerIndex): void {
    this.#keepers.delete(worker);
    for (let pair = this.#firstOfWorker[worker] ?? NONE; pair !== NONE; ) {
      const next = this.#nextOfWorker[pair]!;
      this.#delete(pair, this.#slotOf(worker, this.#hashes[pair]!));
      pair = next;
    }
  }

  #slotOf(worker: WorkerIndex, hash: number): number {
    const table = this.#byPair;
    for (let slot = table.find(codeOf(hash, worker)); slot >= 0; slot = table.findNext(slot)) {
      const pair = table.valueAt(slot);
      if (this.#hashes[pair] === hash && this.#workers[pair] === worker) return slot;
    }
    return NONE;
  }

  #slotOfBlock(hash: number): number {
    const table = this.#byBlock;
    for (let slot = table.find(codeOf(hash, NONE)); slot >= 0; slot = table.findNext(slot)) {
      if (this.#hashes[table.valueAt(slot)] === hash) return slot;
    }
    return NONE;
  }

  #insert(worker: WorkerIndex, hash: number): void {
    const pair = this.#takePair();
    this.#hashes[pair] = hash;
    this.#workers[pair] = worker;
    this.#counts[pair] = 1;
    this.#states[pair] = 0;
    this.#byPair.add(codeOf(hash, worker), pair);
    const slot = this.#slotOfBlock(hash);
    const nextOfBlock = slot < 0 ? NONE : this.#byBlock.valueAt(slot);
    if (slot < 0) this.#byBlock.add(codeOf(hash, NONE), pair);
    else this.#byBlock.setValue(slot, pair);
    link(this.#nextOfBlock, this.#previousOfBlock, pair, nextOfBlock);
    link(this.#nextOfWorker, this.#previousOfWorker, pair, this.#firstOfWorker[worker] ?? NONE);
    this.#firstOfWorker[worker] = pair;
    this.#sizes[worker] = this.sizeOf(worker) + 1;
    this.#size += 1;
    this.#bound.used += 1;
  }

  /** @param slot of the pair in its table */
  #delete(pair: number, slot: number): void {
    const worker = this.#workers[pair]!;
    this.#byPair.remove(slot);
    if (this.#previousOfBlock[pair] === NONE) {
      const first = this.#slotOfBlock(this.#hashes[pair]!);
      const next = this.#nextOfBlock[pair]!;
      if (next === NONE) this.#byBlock.remove(first);
      else this.#byBlock.setValue(first, next);
    }
    if (this.#previousOfWorker[pair] === NONE) this.#firstOfWorker[worker] = this.#nextOfWorker[pair]!;
    unlink(this.#nextOfBlock, this.#previousOfBlock, pair);
    unlink(this.#nextOfWorker, this.#previousOfWorker, pair);
    this.#nextOfBlock[pair] = this.#firstFree;
    this.#firstFree = pair;
    this.#sizes[worker]! -= 1;
    this.#size -= 1;
    this.#bound.used -= 1;
  }

  #takePair(): number {
    const free = this.#firstFree;
    if (free !== NONE) {
      this.#firstFree = this.#nextOfBlock[free]!;
      return free;
    }
    if (this.#numPairs === this.#workers.length) this.#grow();
    this.#numPairs += 1;
    return this.#numPairs - 1;
  }

  #grow(): void {
    const hashes = new Float64Array(2 * this.#hashes.length);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    this.#workers = doubled(this.#workers);
    const states = new Uint8Array(2 * this.#states.length);
    states.set(this.#states);
    this.#states = states;
    this.#counts = doubled(this.#counts);
    this.#nextOfBlock = doubled(this.#nextOfBlock);
    this.#previousOfBlock = doubled(this.#previousOfBlock);
    this.#nextOfWorker = doubled(this.#nextOfWorker);
    this.#previousOfWorker = doubled(this.#previousOfWorker);
  }
}

/** Puts a pair before the first one of a list. */
function link(next: Int32Array, previous: Int32Array, pair: number, first: number): void {
  next[pair] = first;
  previous[pair] = NONE;
  if (first !== NONE) previous[first] = pair;
}

function unlink(next: Int32Array, previous: Int32Array, pair: number): void {
  const [before, behind] = [previous[pair]!, next[pair]!];
  if (before !== NONE) next[before] = behind;
  if (behind !== NONE) previous[behind] = before;
}

function doubled(column: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(2 * column.length);
  longer.set(column);
  return longer;
}

/** Code of a block, or of a block at a worker. */
function codeOf(hash: number, worker: WorkerIndex): number {
  let code = Math.imul((hash | 0) ^ Math.imul(worker + 1, 0x9e3779b1), 0x85ebca6b);
  code = Math.imul(code ^ (code >>> 15), 0xc2b2ae35);
  return code ^ (code >>> 16);
}
