import { bitsToBf16 } from '../../../../base/half.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import { isMade, storedBytes, WEIGHT_GROUP } from '../../../directory/weight-blocks.js';
import { exactConversion } from './exact-conversion.js';
import type { OpenFiles } from './open-files.js';
import type { PositionedFile } from './positioned-file.js';
import { checkPowers, MXFP4_EXPONENT } from './power-scales.js';
import { int4Block, int8Block } from './quantize.js';
import { type QuantizedJob, readQuantized } from './quantized-rows.js';
import type { StorageType } from './tensor-types.js';

/** Converts pieces of tensors in memory of its own, which it reuses. */
export class ConvertedRows {
  #raw = new ArrayBuffer(0);
  #floats = new ArrayBuffer(0);
  #turned = new ArrayBuffer(0);
  #converted = new ArrayBuffer(0);

  /**
   * Rows `first` to `first + count` of a job in the target's format: a view that is valid until the next call.
   *
   * @param files for a quantised matrix, whose parts may lie in several
   */
  of(
    job: ConvertJob,
    type: StorageType,
    source: PositionedFile,
    first: number,
    count: number,
    files?: OpenFiles,
  ): Uint8Array {
    const { columns, targetType, transposed = false, addend = 0, factor = 1 } = job;
    const blocks = count * (columns / type.blockElements);
    const raw =
      files !== undefined && isQuantized(job)
        ? inOrder(job, first, count, (from, rows) => readQuantized(job, files, from, rows))
        : this.#read(job, type, source, first, count);
    const targetBytes = storedBytes(targetType, count, columns);
    const isCopied = !transposed && addend === 0 && factor === 1;
    const exact = isCopied ? exactConversion(type.name, targetType) : undefined;
    if (exact !== undefined) {
      this.#converted = grown(this.#converted, targetBytes);
      const target = new Uint8Array(this.#converted, 0, targetBytes);
      exact(raw, blocks, target);
      return target;
    }
    this.#floats = grown(this.#floats, 4 * count * columns);
    let floats = new Float32Array(this.#floats, 0, count * columns);
    type.toF32(raw, blocks, floats);
    if (transposed) floats = this.#turn(floats, count, columns);
    if (addend !== 0) {
      const added = Math.fround(addend);
      for (let i = 0; i < floats.length; i++) floats[i]! += added;
    }
    if (factor !== 1) {
      const multiplied = Math.fround(factor);
      for (let i = 0; i < floats.length; i++) floats[i]! *= multiplied;
    }
    if (targetType === 'f32') return new Uint8Array(floats.buffer, 0, targetBytes);
    this.#converted = grown(this.#converted, targetBytes);
    const target = new Uint8Array(this.#converted, 0, targetBytes);
    if (targetType === 'bf16') toBf16(floats, target);
    else if (isMade(targetType)) quantize(targetType, floats, columns, target);
    return target;
  }

  #read(
    job: ConvertJob,
    type: StorageType,
    source: PositionedFile,
    first: number,
    count: number,
  ): Uint8Array {
    const { rows, columns, interleavedHeads, sourceOffset } = job;
    const rowBytes = (columns / type.blockElements) * type.blockBytes;
    this.#raw = grown(this.#raw, count * rowBytes);
    const raw = new Uint8Array(this.#raw, 0, count * rowBytes);
    if (interleavedHeads === 0 && (!job.transposed || count === rows)) {
      source.read(raw, sourceOffset + first * rowBytes);
    } else if (job.transposed) {
      const element = type.blockBytes;
      for (let c = 0; c < columns; c++) {
        const part = raw.subarray(c * count * element, (c + 1) * count * element);
        const ordered = inOrder(job, first, count, (from, rowsRead) => {
          const target = interleavedHeads === 0 ? part : new Uint8Array(rowsRead * element);
          source.read(target, sourceOffset + (c * rows + from) * element);
          return target;
        });
        if (ordered !== part) part.set(ordered);
      }
    } else {
      const headRows = rows / interleavedHeads;
      for (let r = 0; r < count; r++) {
        const part = raw.subarray(r * rowBytes, (r + 1) * rowBytes);
        source.read(part, sourceOffset + sourceRow(first + r, headRows) * rowBytes);
      }
    }
    if (type.name === 'MXFP4') {
      const inRow = columns / type.blockElements;
      const rowOf = (row: number) => (interleavedHeads === 0 ? row : sourceRow(row, rows / interleavedHeads));
      const placeOf = (block: number) =>
        sourceOffset +
        rowOf(first + Math.floor(block / inRow)) * rowBytes +
        (block % inRow) * type.blockBytes;
      checkPowers(raw, type.blockBytes, MXFP4_EXPONENT, 'a tensor in MXFP4', placeOf, job.source);
    }
    return raw;
  }

  /** Turns [columns, rows] into [rows, columns]. Numbers move as bits, so that a NaN keeps its bits. */
  #turn(floats: Float32Array, rows: number, columns: number): Float32Array<ArrayBuffer> {
    this.#turned = grown(this.#turned, floats.byteLength);
    const from = new Uint32Array(floats.buffer, 0, floats.length);
    const to = new Uint32Array(this.#turned, 0, floats.length);
    for (let c = 0; c < columns; c++)
      for (let r = 0; r < rows; r++) to[r * columns + c] = from[c * rows + r]!;
    return new Float32Array(this.#turned, 0, floats.length);
  }
}

const isQuantized = (job: ConvertJob): job is QuantizedJob => job.quantized !== undefined;

/** Rows of a job out of those that `read` gives; where heads are interleaved, all rows from the first to the last are read. */
function inOrder(
  { rows, interleavedHeads }: ConvertJob,
  first: number,
  count: number,
  read: (first: number, count: number) => Uint8Array,
): Uint8Array {
  if (interleavedHeads === 0) return read(first, count);
  const headRows = rows / interleavedHeads;
  let [from, last] = [Number.POSITIVE_INFINITY, 0];
  for (let row = first; row < first + count; row++) {
    from = Math.min(from, sourceRow(row, headRows));
    last = Math.max(last, sourceRow(row, headRows));
  }
  const all = read(from, last + 1 - from);
  const rowBytes = all.length / (last + 1 - from);
  const ordered = new Uint8Array(count * rowBytes);
  for (let r = 0; r < count; r++) {
    const at = (sourceRow(first + r, headRows) - from) * rowBytes;
    ordered.set(all.subarray(at, at + rowBytes), r * rowBytes);
  }
  return ordered;
}

/**
 * Row of the source that holds target row `row`. llama.cpp stores the halves of a head as pairs:
 *
 *   target (halves)   0 1 2 3 | 4 5 6 7      row = half * size + i
 *   source (pairs)    0 4 1 5 2 6 3 7        row = 2 * i + half
 */
function sourceRow(row: number, headRows: number): number {
  const inside = row % headRows;
  const size = headRows / 2;
  return row - inside + 2 * (inside % size) + Math.floor(inside / size);
}

function toBf16(floats: Float32Array, target: Uint8Array): void {
  const bits = new Uint32Array(floats.buffer, floats.byteOffset, floats.length);
  const rounded = new Uint16Array(target.buffer, target.byteOffset, floats.length);
  for (let i = 0; i < bits.length; i++) rounded[i] = bitsToBf16(bits[i]!);
}

/** Quantizes rows of values, each to the nearest that a block can hold; the last block of a row may be filled up. */
function quantize(type: 'int8' | 'int4', floats: Float32Array, columns: number, target: Uint8Array): void {
  const [write, blockBytes] = type === 'int8' ? [int8Block, 34] : [int4Block, 20];
  for (let row = 0, to = 0; row < floats.length; row += columns)
    for (let at = 0; at < columns; at += WEIGHT_GROUP, to += blockBytes)
      write(floats, row + at, Math.min(WEIGHT_GROUP, columns - at), target, to);
}

/** A buffer of at least `bytes` bytes; its former content may be lost. */
function grown(buffer: ArrayBuffer, bytes: number): ArrayBuffer {
  return buffer.byteLength >= bytes ? buffer : new ArrayBuffer(bytes);
}
