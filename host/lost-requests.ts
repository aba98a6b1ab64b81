/**
 * The requests of a callback module that the worker has. The module's own memory dies with the worker: what is noted
 * here lets its next life hear of their end.
 */
export class LostRequests {
  /** How often each id was taken and not answered yet: a duplicate is refused while the first one goes on. */
  readonly #counts = new Map<bigint, number>();
  #lost: bigint[] = [];
  #reason = '';

  add(requestIds: readonly bigint[]): void {
    for (const id of requestIds) this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  remove(requestIds: readonly bigint[]): void {
    for (const id of requestIds) {
      const count = this.#counts.get(id) ?? 0;
      if (count > 1) this.#counts.set(id, count - 1);
      else this.#counts.delete(id);
      // Told of by the next worker, which may itself have died before it was ready.
      this.#lost = this.#lost.filter((lost) => lost !== id);
    }
  }

  /** The worker died. */
  fail(reason: string): void {
    this.#lost.push(...this.#counts.keys());
    this.#counts.clear();
    this.#reason = reason;
  }

  /** For the next worker: whose end the module is to be told, and why; null where there is nothing to tell. */
  take(): { requestIds: bigint[]; reason: string } | null {
    return this.#lost.length === 0 ? null : { requestIds: [...this.#lost], reason: this.#reason };
  }
}
