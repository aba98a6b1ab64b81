/** What a queue has to know of a request that waits in it. */
export interface Waiting {
  /** 0..1, higher first. */
  readonly priority: number;
  /** Who asks: the name of an API key, or '' where nobody is told apart. */
  readonly key: string;
  /** Share of its key beside others; above 0. */
  readonly weight: number;
  /** Tokens that it may take: its prompt and everything that it may generate. */
  readonly cost: number;
}

/** Requests that wait for a place in the engine, in the order in which they will get it. */
export interface WaitingQueue<T extends Waiting> {
  readonly size: number;
  /** How many of one key wait. */
  sizeOf(key: string): number;
  push(item: T): void;
  /** Takes out the next ones; negative: all. */
  take(max: number): T[];
  /** Some that wait, at most `max`: with one key those that will be taken next. */
  list(max: number): T[];
  /** Takes out one that waits; false where it does not. */
  remove(item: T): boolean;
  /** What was taken earlier has ended: so many tokens were really computed for it. */
  settle(item: T, usedTokens: number): void;
}

/** Puts an item behind all of its priority and above. */
export function insertByPriority<T extends Waiting>(items: T[], item: T): void {
  let place = items.length;
  while (place > 0 && items[place - 1]!.priority < item.priority) place--;
  items.splice(place, 0, item);
}

/** By descending priority, and of one priority in the order of arrival, whoever asks. */
export class ArrivalQueue<T extends Waiting> implements WaitingQueue<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  sizeOf(key: string): number {
    return this.#items.reduce((count, item) => count + (item.key === key ? 1 : 0), 0);
  }

  push(item: T): void {
    insertByPriority(this.#items, item);
  }

  take(max: number): T[] {
    return this.#items.splice(0, max < 0 ? this.#items.length : max);
  }

  list(max: number): T[] {
    return this.#items.slice(0, max);
  }

  remove(item: T): boolean {
    const place = this.#items.indexOf(item);
    if (place >= 0) this.#items.splice(place, 1);
    return place >= 0;
  }

  settle(): void {}
}
