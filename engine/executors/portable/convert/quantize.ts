import { fromHalf, store16, toHalf } from '../../../../base/half.js';
import { WEIGHT_GROUP } from '../../../directory/weight-blocks.js';

/** Not a number, in half precision. */
const NAN_HALF = 0x7e00;

/** Adding this leaves a number no bits below 1, and so rounds it, ties to even. */
const ROUNDING = 1.5 * 2 ** 52;

/** The nearest whole number, ties to even; numbers far beyond 2^31 stay far beyond. */
const rounded = (value: number): number => value + ROUNDING - ROUNDING;

function isAllFinite(x: Float32Array, at: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (!Number.isFinite(x[at + i]!)) return false;
  return true;
}

/** Writes values x[at .. at + count) into a block at `to`: f16 scale | 32 signed bytes. */
export function int8Block(x: Float32Array, at: number, count: number, block: Uint8Array, to: number): void {
  block.fill(0, to, to + 34);
  let greatest = 0;
  for (let i = 0; i < count; i++) {
    const magnitude = Math.abs(x[at + i]!);
    if (greatest < magnitude) greatest = magnitude;
  }
  let half = toHalf(greatest / 127);
  // A tiny scale has few digits in half precision; rounded down it would leave the greatest value out of range.
  if (Math.fround(fromHalf(half) * 127.5) < greatest) half++;
  const scale = fromHalf(half);
  if (!isAllFinite(x, at, count) || !Number.isFinite(scale)) {
    store16(block, to, NAN_HALF);
    return;
  }
  store16(block, to, half);
  if (!(scale > 0)) return;
  for (let i = 0; i < count; i++) {
    const step = rounded(Math.fround(x[at + i]! / scale));
    block[to + 2 + i] = step < -127 ? -127 : Math.min(step, 127);
  }
}

const { fround } = Math;

/**
 * How much the error of each element of a block counts: its magnitude and the block's root mean square. Errors of great weights cost
 * an answer more than those of small ones.
 */
const WEIGHTS = new Float64Array(WEIGHT_GROUP);

function weigh(x: Float32Array, at: number, count: number): void {
  let squares = 0;
  for (let i = 0; i < count; i++) squares += x[at + i]! * x[at + i]!;
  const usual = Math.sqrt(squares / count);
  for (let i = 0; i < count; i++) WEIGHTS[i] = usual + Math.abs(x[at + i]!);
}

/** The nibbles of one block for a scale and a minimum, and their weighted squared error. */
class Fit {
  scale = 0;
  minimum = 0;
  readonly quants = new Uint8Array(WEIGHT_GROUP);
  error = 0;

  make(x: Float32Array, at: number, count: number, wantedScale: number, wantedMinimum: number): void {
    this.scale = toHalf(wantedScale);
    this.minimum = toHalf(wantedMinimum);
    const { quants } = this;
    quants.fill(0);
    const d = fromHalf(this.scale);
    const m = fromHalf(this.minimum);
    let error = 0;
    for (let i = 0; i < count; i++) {
      const value = x[at + i]!;
      if (d > 0) {
        const step = rounded(fround(fround(value - m) / d));
        quants[i] = step < 0 ? 0 : Math.min(step, 15);
      }
      const difference = value - (d * quants[i]! + m);
      error += WEIGHTS[i]! * (difference * difference);
    }
    this.error = error;
  }

  take({ scale, minimum, quants, error }: Fit): void {
    this.scale = scale;
    this.minimum = minimum;
    this.quants.set(quants);
    this.error = error;
  }
}

/**
 * Finds scale and minimum of the least weighted error for given nibbles: a straight line through (quant, x). The result
 * goes into LINE; false if no line rises.
 */
function fitLine(x: Float32Array, at: number, quants: Uint8Array, count: number): boolean {
  let all = 0;
  let q = 0;
  let qq = 0;
  let y = 0;
  let qy = 0;
  for (let i = 0; i < count; i++) {
    const quant = quants[i]!;
    const weight = WEIGHTS[i]!;
    const value = weight * x[at + i]!;
    all += weight;
    q += weight * quant;
    qq += weight * (quant * quant);
    y += value;
    qy += value * quant;
  }
  const spread = all * qq - q * q;
  if (spread <= 0) return false;
  LINE.scale = fround((all * qy - q * y) / spread);
  LINE.minimum = fround((y - LINE.scale * q) / all);
  return LINE.scale > 0;
}

const LINE = { scale: 0, minimum: 0 };
/** The best fit so far, and one to try. */
const BEST = new Fit();
const FIT = new Fit();

function bestFit(x: Float32Array, at: number, count: number): Fit {
  let low = x[at]!;
  let greatest = low;
  for (let i = 1; i < count; i++) {
    const value = x[at + i]!;
    if (value < low) low = value;
    if (!(value < greatest)) greatest = value;
  }
  const range = fround(greatest - low);
  weigh(x, at, count);
  BEST.make(x, at, count, fround(range / 15), low);
  // Tries ranges somewhat narrower and wider than that of the values: the ends are clipped, the middle is finer.
  for (let steps = 13; range > 0 && BEST.error > 0 && steps < 18; steps += 0.5) {
    const begin = fround(low + fround(fround(range * 0.5) * fround(1 - fround(15 / steps))));
    FIT.make(x, at, count, fround(range / steps), begin);
    // A line through the quants makes other quants the nearest, through which the line is nearer still.
    for (let pass = 0; pass < 2; pass++) {
      if (!fitLine(x, at, FIT.quants, count)) break;
      FIT.make(x, at, count, LINE.scale, LINE.minimum);
      if (FIT.error < BEST.error) BEST.take(FIT);
    }
  }
  return BEST;
}

/** Values x[at .. at + count) into a block at `to`: f16 scale | f16 minimum | 16 bytes. */
export function int4Block(x: Float32Array, at: number, count: number, block: Uint8Array, to: number): void {
  block.fill(0, to, to + 20);
  const fit = isAllFinite(x, at, count) ? bestFit(x, at, count) : null;
  if (fit === null || !Number.isFinite(fromHalf(fit.scale)) || !Number.isFinite(fromHalf(fit.minimum))) {
    store16(block, to, NAN_HALF);
    store16(block, to + 2, NAN_HALF);
    return;
  }
  store16(block, to, fit.scale);
  store16(block, to + 2, fit.minimum);
  for (let i = 0; i < 16; i++) block[to + 4 + i] = fit.quants[i]! | (fit.quants[i + 16]! << 4);
}
