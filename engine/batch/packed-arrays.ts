import type { PackedBatch } from './packed-batch.js';
import type { RopeTable } from './rope-table.js';

/** The greatest size of a batch. */
export interface PackedSize {
  tokens: number;
  sequences: number;
  logitRows: number;
}

/** Where the blocks of a batch lie. */
export interface PackedBlocks {
  maxBlocksPerSequence: number;
  /** The most that a batch hands out. */
  numBlocks: number;
}

/** An empty PackedBatch: its arrays, made once. What goes into them others pack. */
export class PackedArrays implements PackedBatch {
  numTokens = 0;
  numSequences = 0;
  numLogitRows = 0;
  numNewBlocks = 0;
  readonly maxBlocks: number;
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  readonly slots: Int32Array;
  readonly queryStart: Int32Array;
  readonly contextLength: Int32Array;
  readonly blockTables: Int32Array;
  readonly logitRows: Int32Array;
  readonly newBlocks: Int32Array;
  readonly ropeRows: Int32Array;
  readonly ropeFrequencies: Float32Array;
  readonly ropeScales: Float32Array;

  constructor(
    { tokens, sequences, logitRows }: PackedSize,
    { maxBlocksPerSequence, numBlocks }: PackedBlocks,
    rope: Pick<RopeTable, 'frequencies' | 'scales'>,
  ) {
    this.maxBlocks = maxBlocksPerSequence;
    this.tokenIds = new Int32Array(tokens);
    this.positions = new Int32Array(tokens);
    this.slots = new Int32Array(tokens);
    this.queryStart = new Int32Array(sequences + 1);
    this.contextLength = new Int32Array(sequences);
    this.blockTables = new Int32Array(sequences * this.maxBlocks);
    this.logitRows = new Int32Array(logitRows);
    this.newBlocks = new Int32Array(numBlocks);
    this.ropeRows = new Int32Array(sequences);
    this.ropeFrequencies = rope.frequencies;
    this.ropeScales = rope.scales;
  }

  /** Empties the batch. */
  clear(): void {
    this.numTokens = 0;
    this.numSequences = 0;
    this.numLogitRows = 0;
    this.numNewBlocks = 0;
  }
}
