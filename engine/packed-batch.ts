/**
 * One iteration's rows without padding. Context chunks come first, then one row per generating sequence.
 *
 *   sequences      A (context chunk of 5)   B (generation)   C (generation)
 *   tokenIds       a3 a4 a5 a6 a7           b9               c2              [T]
 *   positions       3  4  5  6  7            9                2              [T]
 *   slots          where K and V of each token go: block * tokensPerBlock + offset   [T]
 *   queryStart     0              5          6               7               [B + 1]
 *   contextLength  8                         10              3               [B]  tokens in the cache after this step
 *   blockTables    maxBlocks entries per sequence, unused ones 0             [B x maxBlocks]
 *   logitRows      4              5          6                               [R]  rows of T whose logits are needed
 *
 * The arrays are allocated once at their greatest size; the counts say how much of each is valid.
 */
export interface PackedBatch {
  numTokens: number;
  numSequences: number;
  numLogitRows: number;
  /** Blocks handed out in this iteration: their K and V are zeroed before anything is written. */
  numNewBlocks: number;
  /** Entries per sequence in blockTables. */
  readonly maxBlocks: number;
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  readonly slots: Int32Array;
  readonly queryStart: Int32Array;
  readonly contextLength: Int32Array;
  readonly blockTables: Int32Array;
  readonly logitRows: Int32Array;
  readonly newBlocks: Int32Array;
  /**
   * Row of ropeFrequencies that each sequence uses [B]; row 0 serves all sequences unless the RoPE scaling
   * depends on the final length, which is then fixed at admission.
   */
  readonly ropeRows: Int32Array;
  /** Inverse frequencies [rows x rotaryDim / 2]. */
  readonly ropeFrequencies: Float32Array;
  /** Factor on cos and sin for each row of ropeFrequencies. */
  readonly ropeScales: Float32Array;
}
