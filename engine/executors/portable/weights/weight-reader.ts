import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readProblem } from '../../../../base/system-problem.js';
import type { PlanWeight } from '../../../../network/plan.js';
import type { EngineTensor } from '../../../building/engine-directory.js';
import { storedBytes } from '../../../building/weight-precision.js';
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
  readonly #tensors = new Map<string, EngineTensor>();
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
      const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
      const fileBytes = fstatSync(this.#descriptor).size;
      for (const weight of plan.weights) {
        const tensor = byName.get(weight.name);
        if (tensor === undefined)
          throw new Error(`${weightsFile} has no tensor ${weight.name}, which the plan needs.`);
        checkTensor(tensor, weight, weightsFile, fileBytes);
        this.#tensors.set(weight.name, tensor);
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
    const tensor = this.#tensors.get(name);
    if (tensor === undefined) throw new Error(`The plan has no weight ${name}.`);
    const { dtype, columns } = tensor;
    const { first, count } = rows ?? { first: 0, count: tensor.rows };
    const values = target ?? new Float32Array(count * columns);
    if (first < 0 || first + count > tensor.rows || values.length !== count * columns) {
      throw new Error(
        `Rows ${first} to ${first + count} of tensor ${name} [${tensor.rows} x ${columns}] do not fill ` +
          `${values.length} values.`,
      );
    }
    const bytesPerRow = storedBytes(dtype, 1, columns);
    const rowsAtOnce = Math.max(1, Math.floor(PIECE_BYTES / bytesPerRow));
    for (let row = 0; row < count; row += rowsAtOnce) {
      const rowsNow = Math.min(rowsAtOnce, count - row);
      const stored = this.#readBytes(tensor.offset + (first + row) * bytesPerRow, rowsNow * bytesPerRow);
      dequantizeRows(dtype, stored, columns, values.subarray(row * columns, (row + rowsNow) * columns));
    }
    return values;
  }

  /** Closes the file; values that were read stay. */
  close(): void {
    closeSync(this.#descriptor);
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

/** Checks a tensor like the native executor, with the same messages. */
function checkTensor(tensor: EngineTensor, weight: PlanWeight, file: string, fileBytes: number): void {
  const { dtype, rows, columns, offset, byteLength } = tensor;
  const name = `${file}: tensor ${weight.name}`;
  if (rows !== weight.rows || columns !== weight.columns) {
    throw new Error(
      `${name} is [${rows} x ${columns}], but the plan expects [${weight.rows} x ${weight.columns}].`,
    );
  }
  if (weight.kind === 'vector' && dtype !== 'f32') throw new Error(`${name} is a vector and must be f32.`);
  const bytes = storedBytes(dtype, rows, columns);
  if (byteLength !== bytes) {
    throw new Error(`${name} takes ${bytes} bytes, but its entry says ${byteLength}.`);
  }
  if (offset < 0 || offset % 64 !== 0 || offset + bytes > fileBytes) {
    throw new Error(
      `${name} must lie within the file at a multiple of 64, but its ${bytes} bytes begin at ${offset} and the file ` +
        `has ${fileBytes}.`,
    );
  }
}
