export interface RecentValuesOptions {
  /** Most values. */
  maxCount: number;
  /** Most units of all together. */
  maxUnits: number;
}

/** Values by texts; those that were used last are kept, within a number and a sum of their sizes. */
export class RecentValues<T> {
  readonly #options: RecentValuesOptions;
  readonly #entries = new Map<string, { value: T; units: number }>();
  #units = 0;

  constructor(options: RecentValuesOptions) {
    this.#options = options;
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    // A map goes over its entries in the order in which they came.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Keeps a value of this size, unless it alone would be too much. */
  set(key: string, value: T, units: number): void {
    const { maxCount, maxUnits } = this.#options;
    this.#forget(key);
    if (units > maxUnits) return;
    this.#entries.set(key, { value, units });
    this.#units += units;
    while (this.#units > maxUnits || this.#entries.size > maxCount) {
      this.#forget(this.#entries.keys().next().value!);
    }
  }

  get count(): number {
    return this.#entries.size;
  }

  get units(): number {
    return this.#units;
  }

  #forget(key: string): void {
    this.#units -= this.#entries.get(key)?.units ?? 0;
    this.#entries.delete(key);
  }
}
