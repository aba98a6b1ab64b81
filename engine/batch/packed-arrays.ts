import { columnHolder } from '../../base/columns.js';
import { CALL_HEADER, type CallPlace, newHeader } from '../packed-call/call-header.js';
import { type PackedLimits, packedCounts } from '../packed-call/call-limits.js';
import { PACKED_TABLE, type PackedBatch } from '../packed-call/packed-batch.js';
import type { RopeTable } from './rope-table.js';

/** An empty PackedBatch: its arrays and counts, made once. Subclasses fill them. */
export class PackedArrays extends columnHolder(PACKED_TABLE) implements PackedBatch {
  readonly maxBlocks: number;
  readonly ropeFrequencies: Float32Array;
  readonly ropeScales: Float32Array;
  readonly #counts: Int32Array;

  /** @param place memory for the arrays; absent: memory of their own */
  constructor(limits: PackedLimits, rope: Pick<RopeTable, 'frequencies' | 'scales'>, place?: CallPlace) {
    super(packedCounts(limits), place?.region);
    this.maxBlocks = limits.maxBlocksPerSequence;
    this.ropeFrequencies = rope.frequencies;
    this.ropeScales = rope.scales;
    this.#counts = place?.header ?? newHeader();
  }

  get numTokens(): number {
    return this.#counts[CALL_HEADER.numTokens]!;
  }

  set numTokens(count: number) {
    this.#counts[CALL_HEADER.numTokens] = count;
  }

  get numSequences(): number {
    return this.#counts[CALL_HEADER.numSequences]!;
  }

  set numSequences(count: number) {
    this.#counts[CALL_HEADER.numSequences] = count;
  }

  get numLogitRows(): number {
    return this.#counts[CALL_HEADER.numLogitRows]!;
  }

  set numLogitRows(count: number) {
    this.#counts[CALL_HEADER.numLogitRows] = count;
  }

  get numNewBlocks(): number {
    return this.#counts[CALL_HEADER.numNewBlocks]!;
  }

  set numNewBlocks(count: number) {
    this.#counts[CALL_HEADER.numNewBlocks] = count;
  }

  /** Empties the batch. */
  clear(): void {
    this.numTokens = 0;
    this.numSequences = 0;
    this.numLogitRows = 0;
    this.numNewBlocks = 0;
  }
}
