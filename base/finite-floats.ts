/** Numbers that are looked at before it is asked whether one of them was not finite. */
const SPAN = 4096;

/**
 * Index of the first number that is not finite; -1: there is none. A number times 0 is 0, or NaN where it is not finite, and sums keep NaN:
 * so a span of numbers takes one comparison, and four sums side by side do not wait for one another.
 */
export function firstNotFinite(values: Float32Array): number {
  for (let start = 0; start < values.length; start += SPAN) {
    const end = Math.min(values.length, start + SPAN);
    if (isFiniteSpan(values, start, end)) continue;
    for (let i = start; i < end; i++) if (!Number.isFinite(values[i])) return i;
  }
  return -1;
}

function isFiniteSpan(values: Float32Array, start: number, end: number): boolean {
  let [a, b, c, d] = [0, 0, 0, 0];
  let i = start;
  for (; i + 4 <= end; i += 4) {
    a += values[i]! * 0;
    b += values[i + 1]! * 0;
    c += values[i + 2]! * 0;
    d += values[i + 3]! * 0;
  }
  for (; i < end; i++) a += values[i]! * 0;
  return a + b + c + d === 0;
}
