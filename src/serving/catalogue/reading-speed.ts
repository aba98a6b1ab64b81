/** Measurements of which the best counts: what else the machine does makes each slower, and none faster. */
const MAX_MEASUREMENTS = 5;
/** Milliseconds between two of them. */
const REST_MS = 30_000;

/** How fast memory is read, measured when that is asked for and nothing computes. */
export class ReadingSpeed {
  readonly #measure: () => Promise<number>;
  readonly #isIdle: () => boolean;
  #bytesPerSecond: number | null = null;
  #begun = 0;
  #nextMs = 0;
  #settled: Promise<void> = Promise.resolve();

  /** @param measure bytes a second; takes all processors for half a second @param isIdle true while no model computes */
  constructor(measure: () => Promise<number>, isIdle: () => boolean) {
    this.#measure = measure;
    this.#isIdle = isIdle;
  }

  /** Resolves when no measurement is under way: others would make it slower. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  /** Bytes a second, the best so far; null: not measured yet, or it failed. A measurement that is due begins. */
  get bytesPerSecond(): number | null {
    const now = performance.now();
    if (this.#begun < MAX_MEASUREMENTS && now >= this.#nextMs && this.#isIdle()) {
      this.#begun++;
      this.#nextMs = now + REST_MS;
      this.#settled = this.#measure().then(
        (rate) => {
          this.#bytesPerSecond = Math.max(rate, this.#bytesPerSecond ?? 0);
        },
        () => {},
      );
    }
    return this.#bytesPerSecond;
  }
}
