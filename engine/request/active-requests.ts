import { passLaterArrivals } from '../../scheduler/tokens/ageing.js';
import type { RequestProgress } from './request-progress.js';

/**
 * The requests in flight: by id, and as the list that the schedulers walk, by descending priority and then in order of
 * arrival. A paused request keeps its place. With a limit to waiting, a request that has waited this many
 * iterations (not only in a row) goes in front of all that came later, and no later one is put before it.
 */
export class ActiveRequests<R extends RequestProgress> {
  readonly #byId = new Map<bigint, R>();
  readonly #ordered: R[] = [];
  readonly #maxWaitIterations: number;
  #numHeld = 0;
  #numArrivals = 0;

  constructor(maxWaitIterations = Number.POSITIVE_INFINITY) {
    this.#maxWaitIterations = maxWaitIterations;
  }

  get size(): number {
    return this.#ordered.length;
  }

  /** The requests in scheduling order; not to be changed. */
  get ordered(): readonly R[] {
    return this.#ordered;
  }

  /** Requests of the list that are not complete. */
  get running(): readonly R[] {
    return this.#numHeld === 0 ? this.#ordered : this.#ordered.filter((request) => !request.isComplete);
  }

  has(requestId: bigint): boolean {
    return this.#byId.has(requestId);
  }

  get(requestId: bigint): R | undefined {
    return this.#byId.get(requestId);
  }

  /** Adds a request. One that is already complete leaves with the next `removeComplete`, and never runs. */
  add(request: R): void {
    let place = this.#ordered.length;
    while (place > 0 && givesWayTo(request, this.#ordered[place - 1]!)) place--;
    this.#ordered.splice(place, 0, request);
    request.arrivalNumber = this.#numArrivals++;
    this.#byId.set(request.requestId, request);
    if (request.isComplete) this.#numHeld++;
  }

  /** Moves requests forward that have waited too long; called at the start of an iteration. */
  promoteAged(): void {
    if (this.#maxWaitIterations === Number.POSITIVE_INFINITY) return;
    for (const [place, request] of this.#ordered.entries()) {
      if (request.hasAged || request.waitedIterations < this.#maxWaitIterations) continue;
      request.hasAged = true;
      passLaterArrivals(this.#ordered, place);
    }
  }

  /** Takes out the complete requests that are not held back, calling `retire` for each in order. */
  removeComplete(isHeld: (request: R) => boolean, retire: (request: R) => void): void {
    let kept = 0;
    this.#numHeld = 0;
    for (const request of this.#ordered) {
      if (request.isComplete && !isHeld(request)) {
        this.#byId.delete(request.requestId);
        retire(request);
      } else {
        if (request.isComplete) this.#numHeld++;
        this.#ordered[kept++] = request;
      }
    }
    this.#ordered.length = kept;
  }
}

function givesWayTo(newcomer: RequestProgress, { hasAged, priority }: RequestProgress): boolean {
  return !hasAged && priority < newcomer.priority;
}
