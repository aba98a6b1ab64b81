import { isOffer, type QueuedRequest } from './queued-request.js';

/** Requests that wait for one and the same: any worker of a model, or one of a pool. */
export interface UnleasedGroup {
  readonly name: string;
  readonly model: string;
  /** Fingerprint; null: workers of any pool do that may begin the request. */
  readonly pool: string | null;
  /** The first of them: those without a pool of their own may all begin in the same ones. */
  readonly first: QueuedRequest;
  readonly requests: Set<QueuedRequest>;
  /** Those that lie in the stream, by their patience: each is in the order in which it ends. */
  readonly patient: Map<number, Set<QueuedRequest>>;
  /** When a worker was last seen there, on the gateway's clock. */
  seenMs: number;
}

/** True: workers of another pool than its own may take the request, which may have to begin again there. */
export function mayMove(request: QueuedRequest, allowsDifferentBits: boolean): boolean {
  return request.pool === null || !request.hasBegun || allowsDifferentBits || request.mayRestart;
}

/**
 * The requests that no worker has, grouped by the workers they wait for: the gateway checks once per group
 * whether such a worker exists, and the requests whose patience has run out stand first in their row.
 */
export class Unleased {
  readonly #allowsDifferentBits: boolean;
  readonly #groups = new Map<string, UnleasedGroup>();
  readonly #groupOf = new Map<QueuedRequest, UnleasedGroup>();
  readonly #rowOf = new Map<QueuedRequest, Set<QueuedRequest>>();

  constructor(allowsDifferentBits: boolean) {
    this.#allowsDifferentBits = allowsDifferentBits;
  }

  get size(): number {
    return this.#groupOf.size;
  }

  /** Since when a request waits for a worker that is not there, on the gateway's clock. */
  sinceMs(request: QueuedRequest): number {
    return Math.max(request.waitingSinceMs, this.#groupOf.get(request)?.seenMs ?? 0);
  }

  groups(): Iterable<UnleasedGroup> {
    return this.#groups.values();
  }

  /** The request has another stage, or another pool. */
  note(request: QueuedRequest): void {
    const { stage } = request;
    const isThere = stage !== 'leased' && stage !== 'ended';
    const before = this.#groupOf.get(request);
    const now = isThere ? this.#groupFor(request) : undefined;
    this.#leaveRow(request, before);
    if (before !== now) {
      if (before !== undefined) {
        request.waitingSinceMs = Math.max(request.waitingSinceMs, before.seenMs);
        this.#leave(request, before);
      }
      if (now !== undefined) {
        now.requests.add(request);
        this.#groupOf.set(request, now);
      }
    }
    if (now !== undefined && stage === 'offered') this.#joinRow(request, now);
  }

  #groupFor(request: QueuedRequest): UnleasedGroup {
    const { stage, model } = request;
    const isBound = isOffer(stage) || !mayMove(request, this.#allowsDifferentBits);
    const pool = isBound ? request.pool!.fingerprint : null;
    // No fingerprint has a blank in it.
    const { pin, request: asked } = request;
    const name = pool ?? [model, ...(pin === null ? [] : [pin, asked.adapterName ?? ''])].join(' \n');
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    const requests = new Set<QueuedRequest>();
    const group = { name, model, pool, first: request, requests, patient: new Map(), seenMs: 0 };
    this.#groups.set(name, group);
    return group;
  }

  #leave(request: QueuedRequest, group: UnleasedGroup): void {
    group.requests.delete(request);
    this.#groupOf.delete(request);
    if (group.requests.size === 0) this.#groups.delete(group.name);
  }

  #joinRow(request: QueuedRequest, { patient }: UnleasedGroup): void {
    const row = patient.get(request.patienceMs) ?? new Set();
    patient.set(request.patienceMs, row);
    row.add(request);
    this.#rowOf.set(request, row);
  }

  #leaveRow(request: QueuedRequest, group: UnleasedGroup | undefined): void {
    const row = this.#rowOf.get(request);
    if (row === undefined) return;
    this.#rowOf.delete(request);
    row.delete(request);
    if (row.size > 0) return;
    for (const [patienceMs, one] of group!.patient) if (one === row) group!.patient.delete(patienceMs);
  }
}

/** Requests of a group whose patience has run out, at most `most`. */
export function impatient({ patient }: UnleasedGroup, nowMs: number, most: number): QueuedRequest[] {
  const found: QueuedRequest[] = [];
  for (const row of patient.values()) {
    for (const request of row) {
      if (found.length >= most) return found;
      if (nowMs < request.patientUntilMs) break;
      found.push(request);
    }
  }
  return found;
}
