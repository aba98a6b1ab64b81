import type { BatchEntry } from './batch-duties.js';

/** The requests of a host that wait or run, in order of arrival. */
export class HeldEntries<Entry extends BatchEntry> {
  readonly #entries = new Set<Entry>();
  #onEmpty: (() => void)[] = [];

  get size(): number {
    return this.#entries.size;
  }

  /** Requests of which an instance has had a part. */
  get running(): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.hasStarted) count++;
    return count;
  }

  has(entry: Entry): boolean {
    return this.#entries.has(entry);
  }

  [Symbol.iterator](): Iterator<Entry> {
    return this.#entries.values();
  }

  /** @param release stops listening to the entry's AbortSignal; null: it has none */
  add(entry: Entry, release: (() => void) | null): void {
    entry.release = release;
    this.#entries.add(entry);
  }

  /** The request has its answer, or has failed. */
  remove(entry: Entry): void {
    entry.release?.();
    this.#entries.delete(entry);
    if (this.#entries.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  /** Resolves as soon as no request waits or runs. */
  async whenEmpty(): Promise<void> {
    if (this.#entries.size > 0) await new Promise<void>((resolve) => this.#onEmpty.push(resolve));
  }
}
