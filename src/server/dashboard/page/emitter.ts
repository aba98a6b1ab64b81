/** Calls listeners by the name of an event. */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, Set<(value: never) => void>>();

  /** Adds a listener; the returned function removes it. */
  on<K extends keyof Events>(event: K, listener: (value: Events[K]) => void): () => void {
    let listeners = this.#listeners.get(event);
    if (listeners === undefined) {
      listeners = new Set();
      this.#listeners.set(event, listeners);
    }
    const all = listeners;
    all.add(listener);
    return () => all.delete(listener);
  }

  emit<K extends keyof Events>(event: K, value: Events[K]): void {
    for (const listener of this.#listeners.get(event) ?? []) (listener as (value: Events[K]) => void)(value);
  }
}
