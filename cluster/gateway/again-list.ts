import type { QueuedRequest } from './queued-request.js';

/**
 * Requests whose attempt was given up, or that no pool took, in their order. One that finds no pool is tried again when the model's pools are
 * others, and not at each look; suspects (see QueuedRequest) one after another.
 *
 *   push -> fresh --no pool takes it--> stuck --other pools--> fresh
 *             '---one is on trial-----> suspects --the trial is over--> fresh
 */
export class AgainList {
  #fresh = new Set<QueuedRequest>();
  #stuck = new Set<QueuedRequest>();
  readonly #suspects = new Set<QueuedRequest>();
  /** Of the pools that the stuck ones were tried with. */
  #changes = '';
  /** The suspect that was offered last. */
  #onTrial: QueuedRequest | null = null;

  get size(): number {
    return this.#fresh.size + this.#stuck.size + this.#suspects.size;
  }

  push(request: QueuedRequest): void {
    this.endTrial(request);
    this.#fresh.add(request);
  }

  delete(request: QueuedRequest): boolean {
    return this.#fresh.delete(request) || this.#stuck.delete(request) || this.#suspects.delete(request);
  }

  endTrial(request: QueuedRequest): void {
    if (this.#onTrial === request) this.#onTrial = null;
  }

  /**
   * Offers each that may have its turn to `place`, and takes out those for which it says true.
   * @param changes another one than before where the model's pools are others
   */
  placeAll(changes: string, place: (request: QueuedRequest) => boolean): void {
    if (changes !== this.#changes && this.#stuck.size > 0) {
      this.#fresh = new Set([...this.#stuck, ...this.#fresh]);
      this.#stuck = new Set();
    }
    this.#changes = changes;
    if (this.#fresh.size > 0) {
      const fresh = this.#fresh;
      this.#fresh = new Set();
      for (const request of fresh) this.#placeOne(request, place);
    }
    for (const request of this.#suspects) {
      if (this.#onTrial?.isSuspect) return;
      this.#suspects.delete(request);
      this.#placeOne(request, place);
    }
  }

  #placeOne(request: QueuedRequest, place: (request: QueuedRequest) => boolean): void {
    if (request.isSuspect && this.#onTrial?.isSuspect) this.#suspects.add(request);
    else if (!place(request)) this.#stuck.add(request);
    else if (request.isSuspect) this.#onTrial = request;
  }
}
