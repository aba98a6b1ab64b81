export const NAN_HALF = 0x7e00;

/** Adding this leaves a number no bits below 1, and so rounds it, ties to even. */
const ROUNDING = 1.5 * 2 ** 52;

/** The nearest whole number, ties to even; numbers far beyond 2^31 stay far beyond. */
export const rounded = (value: number): number => value + ROUNDING - ROUNDING;

export function isAllFinite(x: Float32Array, at: number, count: number): boolean {
  for (let i = 0; i < count; i++) if (!Number.isFinite(x[at + i]!)) return false;
  return true;
}
