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

/** Numbers of a head that are turned together. */
const togetherOf = (headDim: number) => (headDim > 1024 ? 1 : headDim & -headDim);

/** A key as a cache in int8 rounds it: a Hadamard transform by sums of two in f32, its length left as it is. */
export function turned(head: ArrayLike<number>): number[] {
  const together = togetherOf(head.length);
  let numbers = Array.from(head, Math.fround);
  for (let step = 1; step < together; step *= 2)
    numbers = numbers.map((_, i) => {
      const first = i - (i % together) + ((i % together) >> 1);
      const [a, b] = [numbers[first]!, numbers[first + together / 2]!];
      return Math.fround(i % 2 === 0 ? a + b : a - b);
    });
  return numbers;
}

/** The head that `turned` makes these numbers of, in double precision. */
export function turnedBack(numbers: readonly number[]): number[] {
  const together = togetherOf(numbers.length);
  let head = [...numbers];
  for (let step = 1; step < together; step *= 2)
    head = head.map((_, i) => {
      const place = i % together;
      const [begin, half] = [i - place, together / 2];
      const from = begin + 2 * (place % half);
      return (head[from]! + (place < half ? head[from + 1]! : -head[from + 1]!)) / 2;
    });
  return head;
}

/** A head's key or value as a cache in int8 stands for it; a query, with `most` of 32767. */
export function throughQuants(head: ArrayLike<number>, most: number, isTurned: boolean): number[] {
  const { quants, scale } = quantsOf(isTurned ? turned(head) : head, most);
  const numbers = quants.map((quant) => quant * scale);
  return isTurned ? turnedBack(numbers) : numbers;
}
