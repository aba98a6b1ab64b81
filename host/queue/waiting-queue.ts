/** Facts about a waiting request that its queue needs. */
export interface Waiting {
  /** Priority from 0 to 1, higher first. */
  readonly priority: number;
  /** Name of the client's API key, or '' where clients are not distinguished. */
  readonly key: string;
  /** Weight of the key relative to others; above 0. */
  readonly weight: number;
  /** Most tokens that the request may take: its prompt and everything that it may generate. */
  readonly cost: number;
}

/** Requests that wait for a place in the engine, in the order in which they will get it. */
export interface WaitingQueue<T extends Waiting> {
  readonly size: number;
  /** Number of waiting requests of one key. */
  sizeOf(key: string): number;
  push(item: T): void;
  /** Takes out the next `max` requests; negative: all. */
  take(max: number): T[];
  /** Lists at most `max` waiting requests; where all have one key, those that will be taken next. */
  list(max: number): T[];
  /** Takes out a waiting request; false where it does not wait. */
  remove(item: T): boolean;
  /** Notes that a request taken earlier has ended, with the number of tokens really computed for it. */
  settle(item: T, usedTokens: number): void;
}

/** Inserts an item after all items of its priority or a higher one. */
export function insertByPriority<T extends Waiting>(items: T[], item: T): void {
  let place = items.length;
  while (place > 0 && items[place - 1]!.priority < item.priority) place--;
  items.splice(place, 0, item);
}

/** Queue by descending priority and, within a priority, by order of arrival, whatever the key. */
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
