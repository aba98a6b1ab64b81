import { fromHalf } from '../../../../base/half.js';
import {
  codeBits,
  type QuantizedSource,
  type Scales,
  type ScaleType,
  type Zeros,
} from '../../../../models/checkpoints/quantized/quantized-source.js';
import type { OpenFiles } from './open-files.js';
import { ANY_EXPONENT, checkPowers, MXFP4_EXPONENT } from './power-scales.js';
import { AWQ_ORDER } from './quantized-codes.js';

/** Bytes of a scale. */
export const SCALE_BYTES: Readonly<Record<ScaleType, number>> = {
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E8M0: 1,
};

/** Values of FP8: a sign, 4 bits of an exponent, 3 of a fraction; without infinity, and NaN where all bits are set. */
export const E4M3_VALUES = Float32Array.from({ length: 256 }, (_, code) => {
  const exponent = (code >> 3) & 15;
  const fraction = code & 7;
  if ((code & 0x7f) === 0x7f) return Number.NaN;
  const size = exponent === 0 ? fraction * 2 ** -9 : (8 + fraction) * 2 ** (exponent - 10);
  return code < 128 ? size : -size;
});

/** The part of a grid that belongs to some rows: `rows` of blocks, each with `columns` blocks. */
export interface Grid {
  rows: number;
  columns: number;
  first: number;
}

/** The blocks that rows `first` to `first + count` of a matrix lie in. */
export function gridOf(
  { rowsEach, columnsEach }: QuantizedSource,
  columns: number,
  first: number,
  count: number,
): Grid {
  const from = Math.floor(first / rowsEach);
  return {
    first: from,
    rows: Math.floor((first + count - 1) / rowsEach) + 1 - from,
    columns: Math.ceil(columns / columnsEach),
  };
}

/** The scales of a grid, in the order of its rows, divided by the matrix's divisor. @param rows of the matrix */
export function readScales(
  { name, codes, scales, divisor }: QuantizedSource,
  files: OpenFiles,
  rows: number,
  grid: Grid,
): Float32Array {
  const size = SCALE_BYTES[scales.type];
  const bytes = new Uint8Array(grid.rows * grid.columns * size);
  const file = files.at(scales.file);
  if (!scales.byColumns) file.read(bytes, scales.offset + grid.first * grid.columns * size);
  else {
    for (let g = 0; g < grid.columns; g++) {
      const part = bytes.subarray(g * grid.rows * size, (g + 1) * grid.rows * size);
      file.read(part, scales.offset + (g * rows + grid.first) * size);
    }
  }
  if (scales.type === 'F8_E8M0') {
    const placeOf = (scale: number) =>
      scales.byColumns
        ? Math.floor(scale / grid.rows) * rows + grid.first + (scale % grid.rows)
        : grid.first * grid.columns + scale;
    const most = codes === 'e2m1' ? MXFP4_EXPONENT : ANY_EXPONENT;
    checkPowers(bytes, 1, most, name, (scale) => scales.offset + placeOf(scale), scales.file);
  }
  const values = new Float32Array(grid.rows * grid.columns);
  const stored = storedScales(scales, bytes);
  for (let r = 0; r < grid.rows; r++) {
    for (let g = 0; g < grid.columns; g++)
      values[r * grid.columns + g] = stored[scales.byColumns ? g * grid.rows + r : r * grid.columns + g]!;
  }
  if (divisor !== undefined) {
    const one = new Float32Array(1);
    files.at(divisor.file).read(new Uint8Array(one.buffer), divisor.offset);
    for (let i = 0; i < values.length; i++) values[i]! /= one[0]!;
  }
  return values;
}

function storedScales({ type }: Scales, bytes: Uint8Array): Float32Array {
  if (type === 'F32') return new Float32Array(bytes.buffer);
  if (type === 'F8_E4M3') return Float32Array.from(bytes, (code) => E4M3_VALUES[code]!);
  if (type === 'F8_E8M0') return Float32Array.from(bytes, (code) => 2 ** (code - 127));
  const words = new Uint16Array(bytes.buffer);
  if (type === 'F16') return Float32Array.from(words, fromHalf);
  return new Float32Array(Uint32Array.from(words, (word) => word << 16).buffer);
}

/** The zero points of a grid, in the order of its rows. @param rows of the matrix */
export function readZeros(
  { zeros, codes, rowsEach }: QuantizedSource & { zeros: Zeros },
  files: OpenFiles,
  rows: number,
  grid: Grid,
): Int16Array {
  const file = files.at(zeros.file);
  if (zeros.order === 'bytes') {
    const bytes = new Int8Array(grid.rows * grid.columns);
    file.read(new Uint8Array(bytes.buffer), zeros.offset + grid.first * grid.columns);
    return Int16Array.from(bytes);
  }
  const bits = codeBits(codes);
  const inWord = 32 / bits;
  const from = Math.floor(grid.first / inWord);
  const down = Math.ceil((grid.first + grid.rows) / inWord) - from;
  const words = new Uint32Array(down * grid.columns);
  const byRows = zeros.order === 'packedRows';
  if (byRows) file.read(new Uint8Array(words.buffer), zeros.offset + 4 * from * grid.columns);
  else {
    const across = Math.ceil(Math.ceil(rows / rowsEach) / inWord);
    for (let g = 0; g < grid.columns; g++)
      file.read(new Uint8Array(words.buffer, 4 * g * down, 4 * down), zeros.offset + 4 * (g * across + from));
  }
  const added = zeros.add * (bits === 4 ? 0x11111111 : 0x01010101);
  const values = new Int16Array(grid.rows * grid.columns);
  for (let w = 0; w < down; w++) {
    for (let g = 0; g < grid.columns; g++) {
      const word = (words[byRows ? w * grid.columns + g : g * down + w]! + added) >>> 0;
      for (let j = 0; j < inWord; j++) {
        const place = zeros.order === 'awq' ? AWQ_ORDER[j]! : j;
        const at = inWord * (from + w) + place - grid.first;
        if (at >= 0 && at < grid.rows)
          values[at * grid.columns + g] = (word >>> (bits * j)) & (2 ** bits - 1);
      }
    }
  }
  return values;
}
