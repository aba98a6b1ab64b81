import { type AdapterCapacity, hasStarted, type SchedulableRequest } from './types.js';

/** Adapters that requests have claimed; those of the same task share one claim. */
class AdapterRoom {
  readonly #capacity: AdapterCapacity;
  readonly #claimed = new Set<bigint>();
  #pages = 0;
  /** Claimed adapters that the step loads. */
  #loads = 0;

  constructor(capacity: AdapterCapacity) {
    this.#capacity = capacity;
  }

  /** True if the request's adapter is claimed already, or has room with those that are. */
  fits({ adapter }: SchedulableRequest): boolean {
    if (adapter == null || this.#claimed.has(adapter.taskId)) return true;
    const { maxPages, maxAdapters } = this.#capacity;
    return this.#pages + adapter.pages <= maxPages && this.#claimed.size < maxAdapters;
  }

  /** True if the step would load the request's adapter and another one. */
  loadsTooMany({ adapter }: SchedulableRequest): boolean {
    return this.#loads > 0 && this.#isToLoad(adapter);
  }

  claim({ adapter }: SchedulableRequest): void {
    if (adapter == null || this.#claimed.has(adapter.taskId)) return;
    if (this.#isToLoad(adapter)) this.#loads++;
    this.#claimed.add(adapter.taskId);
    this.#pages += adapter.pages;
  }

  #isToLoad(adapter: SchedulableRequest['adapter']): boolean {
    const { isLoaded } = this.#capacity;
    if (adapter == null || isLoaded === undefined || this.#claimed.has(adapter.taskId)) return false;
    return !isLoaded(adapter.taskId);
  }
}

/**
 * Adapters where requests run to their end (GUARANTEED_NO_EVICT): all started requests have theirs, so one that has not started
 * runs only if its adapter fits in with them. Otherwise it is skipped, and those behind it are tried.
 *
 *   room 2       A  task 1   generation   claims 1
 *                B  task 2   generation   claims 2
 *                C  task 3   context      does not fit: skipped
 *                D  task 2   context      shares the claim of B: starts
 *
 * If ever more requests of 1 and 2 came, C would wait for ever. So once a skipped request has aged, no
 * request behind it starts with an adapter: the claims end one after the other.
 *
 * Of those that start, one brings an adapter that has to be loaded; the others wait for the next step.
 */
export class AdaptersToCompletion {
  readonly #room: AdapterRoom;
  #startsAreHeld = false;

  constructor(requests: readonly SchedulableRequest[], capacity: AdapterCapacity) {
    this.#room = new AdapterRoom(capacity);
    for (const request of requests) if (hasStarted(request)) this.#room.claim(request);
  }

  /** True if the request at the walk's place lacks room for its adapter and is skipped. */
  skips(request: SchedulableRequest): boolean {
    if (request.adapter == null || hasStarted(request)) return false;
    if (!this.#startsAreHeld && this.#room.fits(request)) return this.#room.loadsTooMany(request);
    this.#startsAreHeld ||= request.hasAged === true;
    return true;
  }

  schedules(request: SchedulableRequest): void {
    this.#room.claim(request);
  }
}

/**
 * Adapters where only this step counts (MAX_UTILIZATION): in the order of the list, each request that runs claims its adapter,
 * and one whose adapter does not fit in with them is skipped, even if it has started; it keeps its blocks
 * then.
 *
 * Adapters of a step in flight stay where they are, so they take room too. A request that fits in with those
 * in front of it, but not with the step in flight, keeps its place: the others claim nothing that it needs
 * once that step has ended. Without that, two micro-batches in turns could keep it waiting for ever:
 *
 *   room 2       A  task 3                does not fit with 1 and 2, but keeps a place
 *                B  task 1   in flight
 *                C  task 2   in flight
 *                D  task 1                shares the room of B, and fits with A: runs
 *                E  task 2                fits with B and C, but then A would wait for E next: skipped
 */
export class AdaptersOfStep {
  readonly #running: AdapterRoom;
  readonly #kept: AdapterRoom;

  constructor(requests: readonly SchedulableRequest[], capacity: AdapterCapacity) {
    this.#running = new AdapterRoom(capacity);
    this.#kept = new AdapterRoom(capacity);
    for (const request of requests) if (request.inFlight) this.#running.claim(request);
  }

  /** True if the request at the walk's place lacks room for its adapter and is skipped. */
  skips(request: SchedulableRequest): boolean {
    if (!this.#kept.fits(request)) return true;
    if (this.#running.fits(request) && !this.#running.loadsTooMany(request)) return false;
    this.#kept.claim(request);
    return true;
  }

  schedules(request: SchedulableRequest): void {
    this.#kept.claim(request);
    this.#running.claim(request);
  }
}
