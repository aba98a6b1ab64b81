/** Requests under way by the ids that their clients gave them, so that another request can end them. Clients of other API keys find none. */
export class RunningIds {
  readonly #stops = new Map<string, Set<() => void>>();

  /**
   * Adds a request under way. @param id '': it has none, and is not found @param stop ends it with what it has
   * @returns takes it out
   */
  add(caller: string, id: string, stop: () => void): () => void {
    if (id === '') return () => {};
    const key = keyOf(caller, id);
    const stops = this.#stops.get(key) ?? new Set();
    this.#stops.set(key, stops.add(stop));
    return () => {
      stops.delete(stop);
      if (stops.size === 0) this.#stops.delete(key);
    };
  }

  /** Ends all requests of this id. */
  stop(caller: string, id: string): void {
    for (const stop of [...(this.#stops.get(keyOf(caller, id)) ?? [])]) stop();
  }

  get size(): number {
    return this.#stops.size;
  }
}

/** No name of a key holds a null byte. */
const keyOf = (caller: string, id: string) => `${caller}\0${id}`;
