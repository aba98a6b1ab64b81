import { codeBits, type QuantizedSource } from '../../../../models/checkpoints/quantized/quantized-source.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import type { PositionedFile } from './positioned-file.js';

/** Rows that AWQ has in a word, from its lowest bits on. */
export const AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7] as const;

/** The codes of rows `first` to `first + count` of a quantised matrix, a byte each, in the order of rows. */
export function readCodes(
  job: ConvertJob & { quantized: QuantizedSource },
  source: PositionedFile,
  first: number,
  count: number,
): Uint8Array {
  const codes = new Uint8Array(count * job.columns);
  if (job.quantized.order === 'rows') readRows(job, source, first, codes);
  else if (job.quantized.order === 'gptq') readGptq(job, source, first, count, codes);
  else readAwq(job, source, first, count, codes);
  return codes;
}

type Job = Parameters<typeof readCodes>[0];

function readRows(job: Job, source: PositionedFile, first: number, codes: Uint8Array): void {
  const { columns, rows, sourceOffset, sourceByteLength } = job;
  const rowBytes = sourceByteLength / rows;
  const count = codes.length / columns;
  if (codeBits(job.quantized.codes) === 8 && rowBytes === columns) {
    source.read(codes, sourceOffset + first * rowBytes);
    return;
  }
  const bytes = new Uint8Array(count * rowBytes);
  source.read(bytes, sourceOffset + first * rowBytes);
  const isHalf = codeBits(job.quantized.codes) === 4;
  for (let r = 0, to = 0; r < count; r++) {
    for (let c = 0; c < columns; c++, to++) {
      codes[to] = isHalf ? (bytes[r * rowBytes + (c >> 1)]! >> (4 * (c & 1))) & 15 : bytes[r * rowBytes + c]!;
    }
  }
}

function readGptq(job: Job, source: PositionedFile, first: number, count: number, codes: Uint8Array): void {
  const { columns, rows, sourceOffset } = job;
  const bits = codeBits(job.quantized.codes);
  const inWord = 32 / bits;
  const mask = 2 ** bits - 1;
  const words = new Uint32Array(count);
  for (let column = 0; column < columns; column += inWord) {
    source.read(new Uint8Array(words.buffer), sourceOffset + 4 * ((column / inWord) * rows + first));
    for (let r = 0; r < count; r++)
      for (let j = 0; j < inWord; j++) codes[r * columns + column + j] = (words[r]! >>> (bits * j)) & mask;
  }
}

function readAwq(job: Job, source: PositionedFile, first: number, count: number, codes: Uint8Array): void {
  const { columns, rows, sourceOffset } = job;
  const from = Math.floor(first / 8);
  const words = new Uint32Array(Math.ceil((first + count) / 8) - from);
  for (let c = 0; c < columns; c++) {
    source.read(new Uint8Array(words.buffer), sourceOffset + 4 * ((c * rows) / 8 + from));
    for (let w = 0; w < words.length; w++) {
      for (let j = 0; j < 8; j++) {
        const row = 8 * (from + w) + AWQ_ORDER[j]! - first;
        if (row >= 0 && row < count) codes[row * columns + c] = (words[w]! >>> (4 * j)) & 15;
      }
    }
  }
}
