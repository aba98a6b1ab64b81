import type { RopeFrequencies } from '../../network/rope.js';
import { ROPE_TABLE } from '../packed-call/packed-batch.js';

/**
 * The rows of PackedBatch.ropeFrequencies. Most models need one row for all sequences. Scalings that depend on the
 * final length of a sequence (dynamic NTK, LongRoPE) get a row per request, fixed at admission, so that no later
 * iteration or neighbour changes an angle.
 */
export class RopeTable {
  /** Inverse frequencies [rows x width]. */
  readonly frequencies: Float32Array;
  /** Factor on cos and sin of each row [rows]. */
  readonly scales: Float32Array;
  readonly #width: number;
  readonly #perLength: ((finalLength: number) => RopeFrequencies) | null;
  readonly #freeRows: number[] = [];

  /**
   * `shared`: the row of all sequences. `perLength`: given if frequencies depend on the final length; then
   * `maxRequests` rows are kept for them, after row 0.
   */
  constructor(
    shared: RopeFrequencies,
    perLength: ((finalLength: number) => RopeFrequencies) | null,
    maxRequests: number,
  ) {
    this.#width = shared.inverseFrequencies.length;
    this.#perLength = perLength;
    const rows = perLength === null ? 1 : 1 + maxRequests;
    const arrays = ROPE_TABLE.allocate({ ropeFrequency: rows * this.#width, ropeRow: rows });
    this.frequencies = arrays.ropeFrequencies;
    this.scales = arrays.ropeScales;
    this.#write(0, shared);
    for (let row = rows - 1; row > 0; row--) this.#freeRows.push(row);
  }

  /** Returns a row for a request whose prompt and new tokens make up `finalLength`. Give it back with `release`. */
  assign(finalLength: number): number {
    if (this.#perLength === null) return 0;
    const row = this.#freeRows.pop();
    if (row === undefined)
      throw new Error('No row of RoPE frequencies is free: more requests than were announced.');
    this.#write(row, this.#perLength(finalLength));
    return row;
  }

  release(row: number): void {
    if (row !== 0) this.#freeRows.push(row);
  }

  #write(row: number, { inverseFrequencies, scale }: RopeFrequencies): void {
    this.frequencies.set(inverseFrequencies, row * this.#width);
    this.scales[row] = scale;
  }
}
