/** Rows that cost hardly more than one until it has been measured: a hopeful guess is corrected by the first step. */
const GUESSED_IDLE_ROWS = 8;
const GUESSED_SLOPE = 0.02;
/** Steps after which a time that was not seen again is forgotten, so that a row count which once looked slow gets another chance. */
const FORGET_AFTER_STEPS = 256;
/** A time is believed sooner where it is shorter: what disturbs a measurement makes it longer. */
const SHORTER_WEIGHT = 0.4;
const LONGER_WEIGHT = 0.1;

/**
 * What a generation step of so many rows takes, measured as the loop runs. On a CPU a step of few rows reads all the
 * weights and computes little, so that rows cost almost nothing until the arithmetic takes as long as the reading:
 *
 *   ms |            . '
 *      |        . '         how many rows are free depends on the processor, the precision and the model
 *      |_ _ _ '
 *      +--------------- rows
 *
 * Between two row counts that were measured the time is interpolated; beyond them a guess of this shape is scaled to
 * the nearest one.
 */
export class StepCost {
  readonly #ms: Float64Array;
  readonly #seenAt: Float64Array;
  #steps = 0;

  constructor(maxRows: number) {
    this.#ms = new Float64Array(maxRows + 1);
    this.#seenAt = new Float64Array(maxRows + 1).fill(Number.NEGATIVE_INFINITY);
  }

  /** A step of `rows` rows, all of them of generating sequences, took so many milliseconds. */
  note(rows: number, ms: number): void {
    if (!(ms > 0) || rows < 1 || rows >= this.#ms.length) return;
    this.#steps++;
    const before = this.#ms[rows]!;
    const weight = ms < before ? SHORTER_WEIGHT : LONGER_WEIGHT;
    this.#ms[rows] = this.#isKnown(rows) ? before + weight * (ms - before) : ms;
    this.#seenAt[rows] = this.#steps;
  }

  /** Milliseconds of a step of so many rows; in units of a step of one row while nothing was measured. */
  of(rows: number): number {
    const below = this.#nearest(rows, -1);
    const above = this.#nearest(rows, 1);
    if (below === 0 && above === 0) return guess(rows);
    if (below === 0) return (this.#ms[above]! * guess(rows)) / guess(above);
    if (above === 0) return (this.#ms[below]! * guess(rows)) / guess(below);
    if (above === below) return this.#ms[rows]!;
    const share = (rows - below) / (above - below);
    return this.#ms[below]! + share * (this.#ms[above]! - this.#ms[below]!);
  }

  #isKnown(rows: number): boolean {
    return this.#steps - this.#seenAt[rows]! <= FORGET_AFTER_STEPS;
  }

  /** The nearest known row count in a direction, `rows` itself included; 0: there is none. */
  #nearest(rows: number, direction: 1 | -1): number {
    let row = Math.min(rows, this.#ms.length - 1);
    if (direction > 0 && row < rows) return 0;
    while (row >= 1 && row < this.#ms.length && !this.#isKnown(row)) row += direction;
    return row < this.#ms.length ? row : 0;
  }
}

function guess(rows: number): number {
  return Math.max(1 + GUESSED_SLOPE * (rows - 1), rows / GUESSED_IDLE_ROWS);
}
