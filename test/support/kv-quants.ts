/** To the nearest whole number, ties to even. */
function rounded(x: number): number {
  const low = Math.floor(x);
  if (x - low !== 0.5) return Math.round(x);
  return low % 2 === 0 ? low : low + 1;
}

/** A row as whole numbers up to `most` and their scale, as a KV cache in int8 has it with 127. */
export function quantsOf(row: ArrayLike<number>, most: number): { quants: number[]; scale: number } {
  const values = Array.from(row);
  const greatest = values.reduce((max, x) => Math.max(max, Math.abs(x)), 0);
  if (greatest === 0) return { quants: values.map(() => 0), scale: 0 };
  const inverse = Math.fround(most / greatest);
  return {
    quants: values.map((x) => rounded(Math.fround(x * inverse))),
    scale: Math.fround(greatest / most),
  };
}
