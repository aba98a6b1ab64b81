import { store16, toHalf } from '../../../../base/half.js';
import type { QuantizedSource } from '../../../../models/checkpoints/quantized/quantized-source.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import { WEIGHT_GROUP } from '../../../directory/weight-blocks.js';
import type { OpenFiles } from './open-files.js';
import { readCodes } from './quantized-codes.js';
import { E4M3_VALUES, gridOf, readScales, readZeros } from './quantized-scales.js';

/** A job for a matrix whose numbers lie in several tensors. */
export type QuantizedJob = ConvertJob & { quantized: QuantizedSource };

/** Values of FP4 (E2M1). */
const E2M1_VALUES = Float32Array.of(...[0, 0.5, 1, 1.5, 2, 3, 4, 6], ...[-0, -0.5, -1, -1.5, -2, -3, -4, -6]);

/** Rows of a quantised matrix: the code of each element, the group that it is in, and that group's scale and zero point. */
interface Rows {
  job: QuantizedJob;
  first: number;
  count: number;
  codes: Uint8Array;
  /** Group of each column. */
  groups: Int32Array;
  scales: Float32Array;
  zeros: Int16Array | null;
}

/** Rows `first` to `first + count` of a quantised matrix as blocks of the job's type, or as float32. */
export function readQuantized(job: QuantizedJob, files: OpenFiles, first: number, count: number): Uint8Array {
  const { quantized, columns, rows: all } = job;
  const grid = gridOf(quantized, columns, first, count);
  const { zeros } = quantized;
  const rows: Rows = {
    job,
    first,
    count,
    codes: readCodes(job, files.at(job.source), first, count),
    groups: groupsOf(job, files, grid.columns),
    scales: readScales(quantized, files, all, grid),
    zeros: zeros === undefined ? null : readZeros({ ...quantized, zeros }, files, all, grid),
  };
  // The first block of rows in the grid is that of the first row.
  const blockOf = (r: number) => (Math.floor((first + r) / quantized.rowsEach) - grid.first) * grid.columns;
  if (job.type === 'F32') return floats(rows, blockOf);
  return job.type === 'MXFP4' ? mxfp4Blocks(rows, blockOf) : scaledBlocks(rows, blockOf);
}

function groupsOf({ quantized, columns }: QuantizedJob, files: OpenFiles, count: number): Int32Array {
  const { groups, columnsEach, name } = quantized;
  if (groups === undefined)
    return Int32Array.from({ length: columns }, (_, c) => Math.floor(c / columnsEach));
  const order = new Int32Array(columns);
  const file = files.at(groups.file);
  file.read(new Uint8Array(order.buffer), groups.offset);
  const wrong = order.findIndex((group) => group < 0 || group >= count);
  if (wrong !== -1)
    throw file.fault(
      `column ${wrong} of ${name} should be in a group below ${count}, found ${order[wrong]}.`,
    );
  return order;
}

/** Value of a code that is no whole number; null: it is one. */
function valuesOf(codes: QuantizedSource['codes']): Float32Array | null {
  if (codes === 'e4m3') return E4M3_VALUES;
  return codes === 'e2m1' ? E2M1_VALUES : null;
}

const wholeNumber = (codes: QuantizedSource['codes'], code: number) =>
  codes === 'i8' ? (code << 24) >> 24 : code;

function floats(
  { job, count, codes, groups, scales, zeros }: Rows,
  blockOf: (r: number) => number,
): Uint8Array {
  const { columns, quantized } = job;
  const values = valuesOf(quantized.codes);
  const target = new Float32Array(count * columns);
  for (let r = 0, at = 0; r < count; r++) {
    const block = blockOf(r);
    for (let c = 0; c < columns; c++, at++) {
      const group = block + groups[c]!;
      const code = codes[at]!;
      const value =
        values === null
          ? wholeNumber(quantized.codes, code) - (zeros === null ? quantized.zero : zeros[group]!)
          : values[code]!;
      target[at] = value * scales[group]!;
    }
  }
  return new Uint8Array(target.buffer);
}

/** Exponent | 16 bytes: the codes of elements 0 .. 15 low, those of 16 .. 31 high. Scales are powers of 2. */
function mxfp4Blocks(
  { job, count, codes, groups, scales }: Rows,
  blockOf: (r: number) => number,
): Uint8Array {
  const blocks = job.columns / WEIGHT_GROUP;
  const target = new Uint8Array(count * blocks * 17);
  for (let r = 0, to = 0; r < count; r++) {
    for (let b = 0; b < blocks; b++, to += 17) {
      const scale = scales[blockOf(r) + groups[b * WEIGHT_GROUP]!]!;
      target[to] = 127 + Math.round(Math.log2(scale));
      putNibbles(codes, (r * blocks + b) * WEIGHT_GROUP, target, to + 1);
    }
  }
  return target;
}

function putNibbles(codes: Uint8Array, from: number, target: Uint8Array, to: number): void {
  for (let i = 0; i < 16; i++) target[to + i] = (codes[from + i]! & 15) | ((codes[from + 16 + i]! & 15) << 4);
}

/** Blocks of Q4_0, Q5_0 and Q8_0: a scale in half precision and what it multiplies. */
function scaledBlocks(rows: Rows, blockOf: (r: number) => number): Uint8Array {
  const { job, count, codes, groups, scales, zeros } = rows;
  const { type, quantized } = job;
  const blocks = job.columns / WEIGHT_GROUP;
  const blockBytes = type === 'Q4_0' ? 18 : type === 'Q5_0' ? 22 : 34;
  const target = new Uint8Array(count * blocks * blockBytes);
  for (let r = 0, to = 0; r < count; r++) {
    for (let b = 0; b < blocks; b++, to += blockBytes) {
      const from = (r * blocks + b) * WEIGHT_GROUP;
      const group = blockOf(r) + groups[b * WEIGHT_GROUP]!;
      store16(target, to, halfScale(rows, r, scales[group]!));
      const zero = zeros === null ? quantized.zero : zeros[group]!;
      if (type === 'Q4_0') putNibbles(codes, from, target, to + 2);
      else if (type === 'Q5_0') putFiveBits(codes, from, 16 - zero, target, to + 2);
      else for (let i = 0; i < WEIGHT_GROUP; i++) target[to + 2 + i] = codes[from + i]! - zero;
    }
  }
  return target;
}

/** Fifth bits | nibbles of 32 codes, to each of which a number is added. */
function putFiveBits(codes: Uint8Array, from: number, added: number, target: Uint8Array, to: number): void {
  const quants = codes.slice(from, from + WEIGHT_GROUP).map((code) => code + added);
  for (let i = 0; i < WEIGHT_GROUP; i++) target[to + (i >> 3)]! |= ((quants[i]! >> 4) & 1) << (i & 7);
  putNibbles(quants, 0, target, to + 4);
}

/** The nearest half of a scale. A scale that is too large for one is refused, since infinity would come of it. */
function halfScale({ job, first }: Rows, row: number, scale: number): number {
  const half = toHalf(scale);
  if ((half & 0x7fff) !== 0x7c00 || !Number.isFinite(scale)) return half;
  const { scales, name } = job.quantized;
  throw new Error(
    `${scales.file}: row ${first + row} of ${name} has a scale beyond 65504, the greatest number of half precision.`,
  );
}
