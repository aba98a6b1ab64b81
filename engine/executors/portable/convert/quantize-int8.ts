import { fromHalf, store16, toHalf } from '../../../../base/half.js';
import { isAllFinite, NAN_HALF, rounded } from './quantized-blocks.js';

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
