import { ATTEMPT_RULES, AttemptFaults, type AttemptRules, type Fall } from '../../host/attempt-faults.js';
import { type FramePlace, type FrameVerdict, verdictOf } from '../../host/frame-verdict.js';

/** Tokens of one sequence as a worker sends them. */
export interface Frame extends FramePlace {
  id: string;
  attempt: number;
  sequence: number;
}

/** stale: no request waits for it from this worker, which may stop. */
export type Verdict = FrameVerdict | { kind: 'stale' };

interface Lease {
  faults: AttemptFaults;
  /** The worker that has it; null: none yet. */
  worker: string | null;
  /** Number of tokens accepted of each sequence. */
  next: number[];
  ended: boolean[];
}

/**
 * The leases of a gateway: which worker has which request, in which attempt, and what was accepted of it. A state
 * machine without clock or I/O.
 *
 *   add -> attempt 1 -> take(worker) -> accept(frame) ... -> all sequences ended
 *              ^                            |
 *              '-- attempt + 1 <--- fall ---'      after too many: poisoned
 *
 * A token is accepted once, whatever is sent twice, late, in another order, or by a worker that was believed lost: where the attempt is the
 * present one and the worker holds it, `verdictOf` decides.
 */
export class LeaseBook {
  readonly #rules: AttemptRules;
  readonly #leases = new Map<string, Lease>();
  readonly #byWorker = new Map<string, Set<string>>();

  constructor(rules: AttemptRules = ATTEMPT_RULES) {
    this.#rules = rules;
  }

  get size(): number {
    return this.#leases.size;
  }

  add(id: string, numSequences: number): void {
    this.#leases.set(id, {
      faults: new AttemptFaults(this.#rules),
      worker: null,
      next: Array.from({ length: numSequences }, () => 0),
      ended: Array.from({ length: numSequences }, () => false),
    });
  }

  has(id: string): boolean {
    return this.#leases.has(id);
  }

  /** Number of the request's present attempt, from 1 on. */
  attemptOf(id: string): number {
    return this.#lease(id).faults.attempt;
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

  /** What counts against the request. */
  faultsOf(id: string): AttemptFaults {
    return this.#lease(id).faults;
  }

  /** Requests that a worker has. */
  heldBy(worker: string): ReadonlySet<string> {
    return this.#byWorker.get(worker) ?? new Set();
  }

  /** Workers that have requests. */
  holders(): string[] {
    return [...this.#byWorker.keys()];
  }

  /** A worker says that it has the request. False: no request waits for it from this worker. */
  take(id: string, attempt: number, worker: string): boolean {
    return this.#taken(id, attempt, worker) !== null;
  }

  accept(worker: string, frame: Frame): Verdict {
    const { id, attempt, sequence } = frame;
    const lease = this.#taken(id, attempt, worker);
    const next = lease?.next[sequence];
    if (lease === null || next === undefined) return { kind: 'stale' };
    const verdict = verdictOf(next, lease.ended[sequence]!, frame);
    if (verdict.kind !== 'take') return verdict;
    const end = frame.index + frame.count;
    if (end > next) lease.faults.gain();
    lease.next[sequence] = end;
    if (frame.isEnd) lease.ended[sequence] = true;
    return verdict;
  }

  /** The lease, where the worker has it or gets it in this attempt. */
  #taken(id: string, attempt: number, worker: string): Lease | null {
    const lease = this.#leases.get(id);
    if (lease === undefined || lease.faults.attempt !== attempt) return null;
    if (lease.worker === null) this.#give(id, lease, worker);
    return lease.worker === worker ? lease : null;
  }

  /** What was accepted of sequences that have not ended counts no more: the next attempt begins them again. */
  restart(id: string): void {
    const { next, ended } = this.#lease(id);
    for (const [sequence, isEnded] of ended.entries()) if (!isEnded) next[sequence] = 0;
  }

  /** The sequence is no longer wanted: for this book, it has ended. */
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
    return lease.faults.fall(why);
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
