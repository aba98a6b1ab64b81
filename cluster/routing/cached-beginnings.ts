import type { BlockIndex, WorkerIndex } from './block-index.js';

/** A block that more workers hold says too little about each of them. */
const FEW = 16;

/**
 * How much of a prompt's beginning each worker has, in either of two indices: what is there may be continued
 * by what will be, and the other way round. Thousands may have a popular beginning, so `look` finds only how
 * much each has at most, from the prompt's end backwards, and `lengthAt` the truth about one of them. Of a
 * beginning that too many have it lists some, and says how much the rest can have.
 *
 *   prompt      h1  h2  h3  h4  h5
 *   A to Z       x   x   x                 3 at most: many have h3
 *   A                        x   x         5 at most: it is one of few with h5
 *   B                        x             4 at most
 *   others                                 0
 *
 * For a model that keeps states, blocks count up to the last one after which they are kept. What is coming
 * counts as if it had them: which blocks will is not known, and prompts that begin alike are to go together.
 */
export class CachedBeginnings {
  readonly #there: BlockIndex;
  readonly #coming: BlockIndex;
  readonly #few: number;
  #hashes: readonly number[] = [];
  /** What each worker has at most, if its search is the present one. */
  readonly #most: number[] = [];
  readonly #searches: number[] = [];
  #search = 0;
  #holders: WorkerIndex[] = [];
  #mostOfRest = 0;

  /** @param few most holders of a block each of which is looked at */
  constructor(there: BlockIndex, coming: BlockIndex, few = FEW) {
    this.#there = there;
    this.#coming = coming;
    this.#few = few;
  }

  /**
   * @param hashes of a prompt's blocks, in order; the other methods are about them until the next call
   * @param mostListed most holders of a beginning that many have; those that have it most lately are listed
   */
  look(hashes: readonly number[], mostListed: number): void {
    this.#hashes = hashes;
    this.#search += 1;
    this.#holders = [];
    this.#mostOfRest = 0;
    let depth = 0;
    while (depth < hashes.length && this.#isHeld(hashes[depth]!)) depth += 1;
    for (; depth > 0 && this.#hasFewHolders(hashes[depth - 1]!); depth -= 1) {
      this.#noteHolders(hashes[depth - 1]!, depth);
    }
    if (depth > 0 && !this.#noteHolders(hashes[0]!, depth, mostListed)) this.#mostOfRest = depth;
  }

  /** Workers that can have a leading block, those that can have the most first; all of them where `mostOfRest` is 0. */
  get holders(): readonly WorkerIndex[] {
    return this.#holders;
  }

  /** Most leading blocks that any worker can have that is not listed. */
  get mostOfRest(): number {
    return this.#mostOfRest;
  }

  /** Most leading blocks that the worker can have. */
  mostAt(worker: WorkerIndex): number {
    return this.#searches[worker] === this.#search ? this.#most[worker]! : this.#mostOfRest;
  }

  /** Number of leading blocks that the worker has, and can continue from. */
  lengthAt(worker: WorkerIndex): number {
    return this.#length(worker, this.#hashes, this.mostAt(worker));
  }

  /** The same of a prompt that was not looked for: one worker alone is wanted. */
  lengthOf(worker: WorkerIndex, hashes: readonly number[]): number {
    return this.#length(worker, hashes, hashes.length);
  }

  #length(worker: WorkerIndex, hashes: readonly number[], most: number): number {
    const needsStates = this.#there.keepsStates(worker);
    let usable = 0;
    for (let length = 0; length < most; length += 1) {
      const hash = hashes[length]!;
      if (!this.#has(worker, hash)) break;
      if (!needsStates || this.#there.hasState(worker, hash) || this.#coming.holds(worker, hash))
        usable = length + 1;
    }
    return usable;
  }

  #isHeld(hash: number): boolean {
    return this.#there.first(hash) >= 0 || this.#coming.first(hash) >= 0;
  }

  #has(worker: WorkerIndex, hash: number): boolean {
    return this.#there.holds(worker, hash) || this.#coming.holds(worker, hash);
  }

  #hasFewHolders(hash: number): boolean {
    let left = this.#few;
    for (const index of [this.#there, this.#coming]) {
      for (let pair = index.first(hash); pair >= 0; pair = index.next(pair)) {
        left -= 1;
        if (left < 0) return false;
      }
    }
    return true;
  }

  /**
   * Those of the block's holders that were not noted for a later block have at most `most` leading blocks.
   * @returns false: it has more holders than are to be looked at
   */
  #noteHolders(hash: number, most: number, mostLooked = Number.POSITIVE_INFINITY): boolean {
    let left = mostLooked;
    for (const index of [this.#there, this.#coming]) {
      for (let pair = index.first(hash); pair >= 0; pair = index.next(pair)) {
        left -= 1;
        if (left < 0) return false;
        const worker = index.workerOf(pair);
        if (this.#searches[worker] === this.#search) continue;
        this.#searches[worker] = this.#search;
        this.#most[worker] = most;
        this.#holders.push(worker);
      }
    }
    return true;
  }
}
