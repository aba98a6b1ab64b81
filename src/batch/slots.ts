interface Waiting {
  key: string;
  begin(): void;
}

/** A bounded number of places, given out in the order in which they were asked for. */
export class Slots {
  readonly #perKey: () => number;
  #free: number;
  readonly #waiting = new Set<Waiting>();
  readonly #taken = new Map<string, number>();

  /** @param perKey returns the most places of one key: others pass it by where it has them */
  constructor(count: number, perKey = () => Number.POSITIVE_INFINITY) {
    this.#free = count;
    this.#perKey = perKey;
  }

  /** Waits for a place. @returns the function that gives it back, once. @throws the signal's reason. */
  async take(signal: AbortSignal, key = ''): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0 && this.#mayHave(key)) this.#count(key, 1);
    else await this.#turn(signal, key);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#count(key, -1);
      this.#giveOn();
    };
  }

  #mayHave(key: string): boolean {
    return (this.#taken.get(key) ?? 0) < this.#perKey();
  }

  #count(key: string, places: 1 | -1): void {
    this.#free -= places;
    const taken = (this.#taken.get(key) ?? 0) + places;
    if (taken === 0) this.#taken.delete(key);
    else this.#taken.set(key, taken);
  }

  #turn(signal: AbortSignal, key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        key,
        begin: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = () => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      this.#waiting.add(waiting);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Gives the free place to the oldest waiter that may have one. */
  #giveOn(): void {
    for (const waiting of this.#waiting) {
      if (!this.#mayHave(waiting.key)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.key, 1);
      waiting.begin();
      return;
    }
  }
}
