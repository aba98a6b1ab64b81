import { describe, expect, it } from 'vitest';
import { WasmHeap } from '../../../../engine/executors/wasm/heap.js';
import { Random } from '../../../../tools/support/random.js';

const ROWS = 21;

/** A matrix with a bias, packed, and rows to multiply by it. */
async function product(inputs: number, outputs: number) {
  const heap = await WasmHeap.open();
  const random = new Random(inputs);
  const staging = heap.take(4 * (inputs * outputs + 2 * outputs + inputs))!;
  const input = heap.take(4 * ROWS * inputs)!;
  const output = heap.take(4 * ROWS * outputs)!;
  const draw = (at: number, length: number) => {
    const values = heap.floatsAt(at, length);
    for (let i = 0; i < length; i++) values[i] = random.normal();
    return values.slice();
  };
  const weights = draw(staging, inputs * outputs);
  const bias = draw(staging + 4 * inputs * outputs, outputs);
  const rows = draw(input, ROWS * inputs);
  const matrix = heap.pack(staging, inputs, outputs, true);
  // The staging memory belongs to others from now on.
  heap.floatsAt(staging, inputs * outputs).fill(Number.NaN);
  /** `count` rows from `first` on. */
  const multiply = (first: number, count: number) => {
    heap.floatsAt(output, ROWS * outputs).fill(-1);
    heap.multiply(input + 4 * first * inputs, matrix, count, output);
    return heap.floatsAt(output, count * outputs).slice();
  };
  return { weights, bias, rows, multiply };
}

describe.each([
  [576, 960],
  [1536, 576],
  [41, 67],
])('a product of %i inputs and %i outputs', (inputs, outputs) => {
  it('is one chain over the inputs in ascending order, from the bias on', async () => {
    const { weights, bias, rows, multiply } = await product(inputs, outputs);
    const product0 = multiply(0, 1);
    for (let n = 0; n < outputs; n += 13) {
      let sum = bias[n]!;
      for (let k = 0; k < inputs; k++)
        sum = Math.fround(sum + Math.fround(rows[k]! * weights[k * outputs + n]!));
      expect(product0[n]).toBe(sum);
    }
  });

  it('has the same bits at any number of rows, wherever they are', async () => {
    const { multiply } = await product(inputs, outputs);
    const whole = multiply(0, ROWS);
    for (let count = 1; count < ROWS; count++) {
      const first = (count * 5) % (ROWS - count);
      expect(multiply(first, count)).toEqual(whole.slice(first * outputs, (first + count) * outputs));
    }
  });
});
