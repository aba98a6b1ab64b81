/**
 * Rows that are assumed to cost hardly more than one until this has been measured: the first steps correct a hopeful
 * guess.
 */
const GUESSED_IDLE_ROWS = 8;
const GUESSED_SLOPE = 0.02;
/**
 * Number of steps after which a time that was not measured again is forgotten, so that a row count which once looked slow gets
 * another chance.
 */
const FORGET_AFTER_STEPS = 256;
/** Number of latest times kept for each row count. */
const KEPT = 5;
/** Number of times below which the shortest counts: disturbances make a measurement longer, and seldom occur twice. */
const ENOUGH = 3;

/**
 * Cost of a generation step by its number of rows, measured as the loop runs. On a CPU a step of few rows reads all the
 * weights and computes little, so that rows cost almost nothing until the arithmetic takes as long as the reading:
 *
 *   ms |            . '
 *      |        . '         how many rows are free depends on the processor, the precision and the model
 *      |_ _ _ '
 *      +--------------- rows
 *
 * For each row count the median of the latest times counts, so that one slow step changes nothing; on a busy machine there
 * are many. A row count measured once is taken to be no slower than the guess from others, and none to be slower than a
 * greater one: it is measured again before it counts as slow.
 *
 *   rows    1  2  3  4  5  6  7         between two row counts that were measured the time is interpolated; beyond them
 *   ms      3  .  9  .  .  4  .         a guess of this shape is scaled to the nearest one
 *   taken   3  3  4  4  4  4  4
 */
export class StepCost {
  /** The latest times of each row count, used as a ring [rows x KEPT]. */
  readonly #times: Float64Array;
  readonly #counts: Int32Array;
  readonly #seenAt: Float64Array;
  /** Typical time of each measured row count. */
  readonly #typical: Float64Array;
  /** Assumed cost of each row count; computed from the typical times when needed after a step. */
  readonly #curve: Float64Array;
  #isCurveOld = false;
  #steps = 0;

  constructor(maxRows: number) {
    this.#times = new Float64Array((maxRows + 1) * KEPT);
    this.#counts = new Int32Array(maxRows + 1);
    this.#seenAt = new Float64Array(maxRows + 1).fill(Number.NEGATIVE_INFINITY);
    this.#typical = new Float64Array(maxRows + 1);
    this.#curve = Float64Array.from({ length: maxRows + 1 }, (_, rows) => shapeOf(rows));
  }

  /** Notes the milliseconds of a step of `rows` rows, all of them of generating sequences. */
  note(rows: number, ms: number): void {
    if (!(ms > 0) || rows < 1 || rows >= this.#typical.length) return;
    if (!this.#isKnown(rows)) this.#counts[rows] = 0;
    const count = this.#counts[rows]!;
    const guessed = count === 0 && this.#steps > 0 ? this.of(rows) : Number.POSITIVE_INFINITY;
    this.#times[rows * KEPT + (count % KEPT)] = ms;
    this.#counts[rows] = count + 1;
    this.#steps++;
    this.#seenAt[rows] = this.#steps;
    this.#typical[rows] = Math.min(this.#medianOf(rows), guessed);
    this.#isCurveOld = true;
  }

  /** Milliseconds of a step of `rows` rows; in units of a step of one row as long as nothing was measured. */
  of(rows: number): number {
    if (this.#isCurveOld) this.#drawCurve();
    const most = this.#curve.length - 1;
    return rows <= most ? this.#curve[rows]! : (this.#curve[most]! * shapeOf(rows)) / shapeOf(most);
  }

  #medianOf(rows: number): number {
    const count = Math.min(this.#counts[rows]!, KEPT);
    const times = this.#times.slice(rows * KEPT, rows * KEPT + count).sort();
    return times[count < ENOUGH ? 0 : count >> 1]!;
  }

  /**
   * Draws the curve from the most rows to the fewest: a measured row count, then those between it and the next measured one.
   */
  #drawCurve(): void {
    const curve = this.#curve;
    let above = 0;
    for (let rows = curve.length - 1; rows >= 1; rows--) {
      if (!this.#isKnown(rows)) continue;
      curve[rows] = above === 0 ? this.#typical[rows]! : Math.min(this.#typical[rows]!, curve[above]!);
      const end = above === 0 ? curve.length : above;
      for (let between = rows + 1; between < end; between++) {
        const share = (between - rows) / (end - rows);
        curve[between] =
          above === 0
            ? (curve[rows]! * shapeOf(between)) / shapeOf(rows)
            : curve[rows]! + share * (curve[above]! - curve[rows]!);
      }
      above = rows;
    }
    for (let rows = 1; rows < above; rows++) curve[rows] = (curve[above]! * shapeOf(rows)) / shapeOf(above);
    this.#isCurveOld = false;
  }

  #isKnown(rows: number): boolean {
    return this.#steps - this.#seenAt[rows]! <= FORGET_AFTER_STEPS;
  }
}

function shapeOf(rows: number): number {
  return Math.max(1 + GUESSED_SLOPE * (rows - 1), rows / GUESSED_IDLE_ROWS);
}
