/** How fast memory is read, measured once, when it is first asked for and nothing computes. */
export class ReadingSpeed {
  readonly #measure: () => Promise<number>;
  readonly #isIdle: () => boolean;
  #bytesPerSecond: number | null = null;
  #isBegun = false;

  /** @param measure bytes a second; takes all processors for half a second @param isIdle true while no model computes */
  constructor(measure: () => Promise<number>, isIdle: () => boolean) {
    this.#measure = measure;
    this.#isIdle = isIdle;
  }

  /** Bytes a second; null: not measured yet, or it failed. */
  get bytesPerSecond(): number | null {
    if (!this.#isBegun && this.#isIdle()) {
      this.#isBegun = true;
      this.#measure().then(
        (rate) => {
          this.#bytesPerSecond = rate;
        },
        () => {},
      );
    }
    return this.#bytesPerSecond;
  }
}
