/** Most names that workers offer. */
const MOST = 1_000;
/** Milliseconds for which an offer holds: it is repeated every second. */
const OFFER_MS = 5_000;

/**
 * Models that are known by their names alone: none of their engines is known, and requests for them show that
 * one is wanted. Some are named by an option; others are offered by workers that could load them, as long as
 * they do.
 */
export class ExpectedModels {
  /** When the first were named, in Unix seconds. */
  readonly since = Math.floor(Date.now() / 1000);
  readonly #named: ReadonlySet<string>;
  readonly #offered = new Map<string, number>();
  /** Requests that were refused, by name. */
  readonly #refused: Map<string, number>;

  constructor(names: readonly string[] = []) {
    this.#named = new Set(names);
    this.#refused = new Map(names.map((name) => [name, 0]));
  }

  /** A worker could load a model. */
  offer(name: string, nowMs = performance.now()): void {
    if (!this.#offered.has(name) && this.#offered.size >= MOST) {
      this.#forget(nowMs);
      if (this.#offered.size >= MOST) return;
    }
    this.#offered.set(name, nowMs + OFFER_MS);
    if (!this.#refused.has(name)) this.#refused.set(name, 0);
  }

  #forget(nowMs: number): void {
    for (const [name, untilMs] of this.#offered) {
      if (untilMs > nowMs) continue;
      this.#offered.delete(name);
      if (!this.#named.has(name)) this.#refused.delete(name);
    }
  }

  has(name: string, nowMs = performance.now()): boolean {
    this.#forget(nowMs);
    return this.#named.has(name) || this.#offered.has(name);
  }

  get names(): string[] {
    this.#forget(performance.now());
    return [...this.#refused.keys()];
  }

  /** Counts a request that is refused for want of an engine. @returns false where no model of this name is expected */
  refuse(name: string): boolean {
    if (!this.has(name)) return false;
    this.#refused.set(name, (this.#refused.get(name) ?? 0) + 1);
    return true;
  }

  /** Numbers of the requests that were refused, also 0, by name. */
  get refused(): ReadonlyMap<string, number> {
    return this.#refused;
  }
}
