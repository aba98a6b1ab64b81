/**
 * Rules of how often a request is begun.
 *
 * A request whose worker is lost is given to another. Where that happens again and again, it may be the request that
 * kills them.
 */
export interface LeaseRules {
  /** Attempts in a row that ended with their worker, and brought no token, after which no more follow. */
  maxFruitlessAttempts: number;
  /** Attempts that ended with their worker, with tokens or without, after which no more follow. */
  maxLostAttempts: number;
  /** Attempts of whatever end. */
  maxAttempts: number;
}

export const LEASE_RULES: LeaseRules = { maxFruitlessAttempts: 3, maxLostAttempts: 10, maxAttempts: 25 };

/** Tokens of one sequence as a worker sends them. */
export interface Frame {
  id: string;
  attempt: number;
  sequence: number;
  /** Tokens of the sequence in front of these, known ones included. */
  index: number;
  /** Number of tokens; 0 where it only tells an end, or something of the prompt. */
  count: number;
  /** The sequence ends with it. */
  isEnd: boolean;
}

/**
 * What becomes of a frame:
 *
 *   take      its tokens from `skip` on are the next ones
 *   repeat    all of it is known already
 *   stale     nobody waits for it from this worker: the worker may stop
 *   gap       tokens in front of it have not come, and will not come any more: the attempt has to be given up
 *   diverged  it ends, or repeats, what went on further before: this attempt is of another answer
 */
export type Verdict = { kind: 'take'; skip: number } | { kind: 'repeat' | 'stale' | 'gap' | 'diverged' };

/** Why an attempt is over. Only `lost` and `failed` count against the request. */
export type Fall = 'lost' | 'failed' | 'gap' | 'moved';

interface Lease {
  attempt: number;
  /** Who has it; null: nobody yet. */
  worker: string | null;
  /** Number of tokens accepted of each sequence. */
  next: number[];
  ended: boolean[];
  /** Tokens were accepted in this attempt. */
  hasGained: boolean;
  fruitless: number;
  lost: number;
}

/**
 * The leases of a gateway: which worker has which request, in which attempt, and what was accepted of it. A state
 * machine without clock or I/O.
 *
 *   add -> attempt 1 -> take(worker) -> accept(frame) ... -> all sequences ended
 *              ^                            |
 *              '-- attempt + 1 <--- fall ---'      after too many: poisoned
 *
 * A token is accepted once, whatever is sent twice, late, in another order, or by a worker that was believed lost:
 *
 *   attempt == current, worker == holder, index <= next        tokens accepted  . . . . . . .
 *                                                              frame                    [index . . count)
 *                                                              skip                     |---|
 */
export class LeaseBook {
  readonly #rules: LeaseRules;
  readonly #leases = new Map<string, Lease>();
  readonly #byWorker = new Map<string, Set<string>>();

  constructor(rules: LeaseRules = LEASE_RULES) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#leases.size;
  }

  add(id: string, numSequences: number): void {
    this.#leases.set(id, {
      attempt: 1,
      worker: null,
      next: Array.from({ length: numSequences }, () => 0),
      ended: Array.from({ length: numSequences }, () => false),
      hasGained: false,
      fruitless: 0,
      lost: 0,
    });
  }

  has(id: string): boolean {
    return this.#leases.has(id);
  }

  /** Number of the request's present attempt, from 1 on. */
  attemptOf(id: string): number {
    return this.#lease(id).attempt;
  }

  /** Worker that has the request; null: none yet. */
  workerOf(id: string): string | null {
    return this.#lease(id).worker;
  }

  /** Number of tokens accepted of each sequence. */
  acceptedOf(id: string): readonly number[] {
    return this.#lease(id).next;
  }

  isEnded(id: string, sequence: number): boolean {
    return this.#lease(id).ended[sequence]!;
  }

  /** Attempts that count against the request; `fruitless`: those in a row that ended with their worker and brought no token. */
  faultsOf(id: string): { fruitless: number; lost: number } {
    const { fruitless, lost } = this.#lease(id);
    return { fruitless, lost };
  }

  /** Requests that a worker has. */
  heldBy(worker: string): ReadonlySet<string> {
    return this.#byWorker.get(worker) ?? new Set();
  }

  /** Workers that have requests. */
  holders(): string[] {
    return [...this.#byWorker.keys()];
  }

  /** A worker says that it has the request. False: nobody waits for it from this worker. */
  take(id: string, attempt: number, worker: string): boolean {
    const lease = this.#leases.get(id);
    if (lease === undefined || lease.attempt !== attempt) return false;
    if (lease.worker === null) this.#give(id, lease, worker);
    return lease.worker === worker;
  }

  accept(worker: string, { id, attempt, sequence, index, count, isEnd }: Frame): Verdict {
    if (!this.take(id, attempt, worker)) return { kind: 'stale' };
    const lease = this.#lease(id);
    const next = lease.next[sequence];
    if (next === undefined) return { kind: 'stale' };
    if (lease.ended[sequence]) return { kind: 'repeat' };
    if (index > next) return { kind: 'gap' };
    const end = index + count;
    if (end < next) return { kind: isEnd ? 'diverged' : 'repeat' };
    if (end === next && count > 0 && !isEnd) return { kind: 'repeat' };
    if (end > next) lease.hasGained = true;
    lease.next[sequence] = end;
    if (isEnd) lease.ended[sequence] = true;
    return { kind: 'take', skip: next - index };
  }

  /** Nobody wants more of a sequence: it has ended, as far as this book goes. */
  leave(id: string, sequence: number): void {
    this.#lease(id).ended[sequence] = true;
  }

  /** Every sequence of the request has ended. */
  isOver(id: string): boolean {
    return this.#lease(id).ended.every((isEnded) => isEnded);
  }

  /**
   * The present attempt is given up.
   * @returns 'again': the next attempt is to be offered; 'poisoned': there was the last one
   */
  fall(id: string, why: Fall): 'again' | 'poisoned' {
    const lease = this.#lease(id);
    this.#takeBack(id, lease);
    if (lease.hasGained) lease.fruitless = 0;
    if (why === 'lost' || why === 'failed') {
      lease.lost++;
      if (!lease.hasGained) lease.fruitless++;
    }
    lease.hasGained = false;
    lease.attempt++;
    const { maxFruitlessAttempts, maxLostAttempts, maxAttempts } = this.#rules;
    const isPoisoned =
      lease.fruitless >= maxFruitlessAttempts || lease.lost >= maxLostAttempts || lease.attempt > maxAttempts;
    return isPoisoned ? 'poisoned' : 'again';
  }

  /** Requests that a worker had and does not have any more. @param held what it says that it has */
  missing(worker: string, held: ReadonlySet<string>): string[] {
    return [...this.heldBy(worker)].filter((id) => !held.has(id));
  }

  /** The request is over: whatever comes of it is stale. */
  remove(id: string): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    this.#takeBack(id, lease);
    this.#leases.delete(id);
  }

  #lease(id: string): Lease {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw new Error(`There is no lease ${id}.`);
    return lease;
  }

  #give(id: string, lease: Lease, worker: string): void {
    lease.worker = worker;
    const held = this.#byWorker.get(worker);
    if (held === undefined) this.#byWorker.set(worker, new Set([id]));
    else held.add(id);
  }

  #takeBack(id: string, lease: Lease): void {
    const { worker } = lease;
    if (worker === null) return;
    lease.worker = null;
    const held = this.#byWorker.get(worker)!;
    held.delete(id);
    if (held.size === 0) this.#byWorker.delete(worker);
  }
}
