/**
 * Requests of a callback module that the worker has. The module's memory dies with the worker; these notes
 * let the next worker report their end to the module.
 */
export class LostRequests {
  /**
   * Number of times that each id was taken and not answered yet: a duplicate is refused while the first one goes on.
   */
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
      // Reported by the next worker, which may itself have died before it was ready.
      this.#lost = this.#lost.filter((lost) => lost !== id);
    }
  }

  /** Notes that the worker died with these requests. */
  fail(reason: string): void {
    this.#lost.push(...this.#counts.keys());
    this.#counts.clear();
    this.#reason = reason;
  }

  /**
   * Requests whose end the next worker must report to the module, with the reason; null where there are none.
   */
  take(): { requestIds: bigint[]; reason: string } | null {
    return this.#lost.length === 0 ? null : { requestIds: [...this.#lost], reason: this.#reason };
  }
}
