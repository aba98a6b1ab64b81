import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { readProblem } from '../../../../base/system-problem.js';
import type { PlanWeight } from '../../../../network/plan.js';
import type { ConvertJob } from '../../../directory/convert-job.js';
import { tensorsByWeight } from '../../../directory/engine-directory.js';
import type { LoadableTensor } from '../../../directory/source-tensors.js';
import { storedBytes } from '../../../directory/weight-blocks.js';
import { withSourceHint } from '../../source-checksum.js';
import { SourceRows } from '../convert/source-rows.js';
import type { RunnableEngine } from '../network-runner.js';
import { dequantizeRows } from './dequantize.js';

/** A range of a weight's rows. */
export interface WeightRows {
  first: number;
  count: number;
}

/** Size of the piece of weights.bin that is in memory at a time, roughly. */
const PIECE_BYTES = 4 << 20;

/**
 * Reads weights of an engine as float32, one at a time; only the caller keeps them. The reader itself holds only a
 * piece of the file in memory.
 */
export class WeightReader {
  readonly #file: string;
  /** Of each weight: the tensors that its rows lie in, in order. */
  readonly #tensors = new Map<string, readonly LoadableTensor[]>();
  /** The tensor in the model's file that was read last: rows are asked for one tensor after the other. */
  #source: { tensor: LoadableTensor; rows: SourceRows } | null = null;
  readonly #descriptor: number;
  #piece = new Uint8Array(0);

  /** Opens weights.bin. Throws one sentence if it cannot be read, or does not hold the weights of the plan. */
  constructor({ plan, tensors, weightsFile }: RunnableEngine) {
    this.#file = weightsFile;
    try {
      this.#descriptor = openSync(weightsFile, 'r');
    } catch (error) {
      throw new Error(`${weightsFile} cannot be read: ${readProblem(error)}`);
    }
    try {
      const byName = tensorsByWeight(tensors);
      const fileBytes = fstatSync(this.#descriptor).size;
      for (const weight of plan.weights) {
        const parts = byName.get(weight.name);
        if (parts === undefined)
          throw new Error(`${weightsFile} has no tensor ${weight.name}, which the plan needs.`);
        checkShapes(parts, weight, weightsFile);
        for (const tensor of parts) checkTensor(tensor, weight, weightsFile, fileBytes);
        this.#tensors.set(weight.name, parts);
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * Reads a weight of the plan [rows x columns], or some of its rows.
   *
   * @param target memory for the values; absent: a new array
   */
  read(name: string, rows?: WeightRows, target?: Float32Array): Float32Array {
    const tensors = this.#tensors.get(name);
    if (tensors === undefined) throw new Error(`The plan has no weight ${name}.`);
    const { columns } = tensors[0]!;
    const allRows = tensors.reduce((sum, tensor) => sum + tensor.rows, 0);
    const { first, count } = rows ?? { first: 0, count: allRows };
    const values = target ?? new Float32Array(count * columns);
    if (first < 0 || first + count > allRows || values.length !== count * columns) {
      throw new Error(
        `Rows ${first} to ${first + count} of tensor ${name} [${allRows} x ${columns}] do not fill ` +
          `${values.length} values.`,
      );
    }
    for (const tensor of tensors) {
      const { firstRow = 0 } = tensor;
      const begin = Math.max(first, firstRow);
      const end = Math.min(first + count, firstRow + tensor.rows);
      if (begin >= end) continue;
      const own = values.subarray((begin - first) * columns, (end - first) * columns);
      this.#readRows(tensor, begin - firstRow, own);
    }
    return values;
  }

  /** Reads rows of a tensor, from `first` on, as many as the target has room for. */
  #readRows(tensor: LoadableTensor, first: number, target: Float32Array): void {
    const { dtype, columns, offset, jobs } = tensor;
    const count = target.length / columns;
    const bytesPerRow = storedBytes(dtype, 1, columns);
    const rowsAtOnce = Math.max(1, Math.floor(PIECE_BYTES / bytesPerRow));
    for (let row = 0; row < count; row += rowsAtOnce) {
      const rowsNow = Math.min(rowsAtOnce, count - row);
      const stored =
        jobs === undefined
          ? this.#readBytes(offset + (first + row) * bytesPerRow, rowsNow * bytesPerRow)
          : this.#sourceOf(tensor, jobs).read(first + row, rowsNow);
      dequantizeRows(dtype, stored, columns, target.subarray(row * columns, (row + rowsNow) * columns));
    }
  }

  #sourceOf(tensor: LoadableTensor, jobs: readonly ConvertJob[]): SourceRows {
    if (this.#source?.tensor === tensor) return this.#source.rows;
    this.#source?.rows.close();
    this.#source = null;
    try {
      const rows = new SourceRows(jobs);
      this.#source = { tensor, rows };
      return rows;
    } catch (error) {
      throw new Error(withSourceHint(error, dirname(this.#file)), { cause: error });
    }
  }

  /** Closes the files; values that were read stay. */
  close(): void {
    closeSync(this.#descriptor);
    this.#source?.rows.close();
    this.#source = null;
    this.#piece = new Uint8Array(0);
  }

  #readBytes(offset: number, length: number): Uint8Array {
    if (this.#piece.length < length) this.#piece = new Uint8Array(length);
    const piece = this.#piece.subarray(0, length);
    for (let done = 0; done < length; ) {
      const count = readSync(this.#descriptor, piece, done, length - done, offset + done);
      if (count === 0)
        throw new Error(
          `${this.#file} ends at byte ${offset + done}, within its tensors; build the engine again.`,
        );
      done += count;
    }
    return piece;
  }
}

/**
 * Checks that the tensors are the rows of the weight, one after the other, with the native executor's
 * messages.
 */
function checkShapes(tensors: readonly LoadableTensor[], weight: PlanWeight, file: string): void {
  const name = `${file}: tensor ${weight.name}`;
  let rows = 0;
  for (const tensor of tensors) {
    const { firstRow = 0 } = tensor;
    const left = weight.rows - rows;
    const isAlone = tensors.length === 1;
    const fits =
      tensor.columns === weight.columns &&
      firstRow === rows &&
      tensor.rows > 0 &&
      (isAlone ? tensor.rows === left : tensor.rows <= left);
    if (!fits) {
      const from = (row: number) => (isAlone ? '' : ` from row ${row} on`);
      throw new Error(
        `${name} is [${tensor.rows} x ${tensor.columns}]${from(firstRow)}, but the plan expects ` +
          `[${left} x ${weight.columns}]${from(rows)}.`,
      );
    }
    rows += tensor.rows;
  }
  if (rows !== weight.rows) throw new Error(`${name} has ${rows} rows, but the plan expects ${weight.rows}.`);
}

/** Checks a tensor like the native executor, with the same messages. */
function checkTensor(tensor: LoadableTensor, weight: PlanWeight, file: string, fileBytes: number): void {
  const { dtype, rows, columns, offset, byteLength } = tensor;
  const name = `${file}: tensor ${weight.name}`;
  if (weight.kind === 'vector' && dtype !== 'f32') throw new Error(`${name} is a vector and must be f32.`);
  const bytes = storedBytes(dtype, rows, columns);
  if (byteLength !== bytes) {
    throw new Error(`${name} takes ${bytes} bytes, but its entry says ${byteLength}.`);
  }
  if (tensor.jobs !== undefined) return;
  if (offset < 0 || offset % 64 !== 0 || offset + bytes > fileBytes) {
    throw new Error(
      `${name} must lie within the file at a multiple of 64, but its ${bytes} bytes begin at ${offset} and the file ` +
        `has ${fileBytes}.`,
    );
  }
}
