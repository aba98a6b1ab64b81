import { type ColumnArrays, ColumnTable, column, startColumn } from '../../base/columns.js';

/** Log-probs of given tokens under rows of logits, and the most probable tokens of each row. */
export interface RowLogProbs {
  /** Token whose log-prob is asked for in each row [count]; -1: none, and the log-prob is NaN. */
  readonly tokens: Int32Array;
  /** Log-prob of each of these tokens [count]. */
  readonly logProbs: Float32Array;
  /** Number of most probable tokens listed per row; 0: none. */
  readonly numTop: number;
  /**
   * The most probable tokens of each row [count x numTop], most probable first, equal ones by id; -1 beyond the
   * vocabulary.
   */
  readonly topTokens: Int32Array;
  readonly topLogProbs: Float32Array;
}

/**
 * Consecutive rows whose logits leave the executor as the network gave them, before penalties and bans. The caller
 * brings the memory; it must stay in place until the step is over.
 */
export interface ReturnedRows {
  /** 'tokens': rows of T, whose logits are computed for this purpose. 'logitRows': rows of logitRows. */
  readonly of: 'tokens' | 'logitRows';
  readonly first: number;
  readonly count: number;
  /** Memory for the logits [count x vocabSize]; null: not wanted. */
  readonly logits: Float32Array | null;
  /** Log-softmax of the same rows, NaN where a row is not finite; null: not wanted. */
  readonly logProbs: RowLogProbs | null;
}

/** Consecutive rows of T that belong to a request with embeddings of its own. */
export interface PromptTableRows {
  readonly first: number;
  readonly count: number;
  /** Own rows of the request [ids x width], see promptRowWidth: row i stands for the token id vocabSize + i in these rows. */
  readonly table: Float32Array;
}

/** The flat arrays of a batch that are packed again in each iteration. */
export const PACKED_COLUMNS = {
  tokenIds: column('i32', 'token'),
  /** Positions for RoPE: the tokens' places, or positions that the request gives. */
  positions: column('i32', 'token'),
  /** Slots that K and V of each token are written to: block * tokensPerBlock + offset. */
  slots: column('i32', 'token'),
  /** First row of each sequence. */
  queryStart: startColumn('sequence'),
  /** Number of tokens in the cache after this step. */
  contextLength: column('i32', 'sequence'),
  /** maxBlocks entries for each sequence. */
  blockTables: column('i32', 'tableEntry'),
  /** Rows whose logits are needed. */
  logitRows: column('i32', 'logitRow'),
  /** Blocks that this iteration is the first to write to. */
  newBlocks: column('i32', 'newBlock'),
  /**
   * Row of ropeFrequencies that each sequence uses. Row 0 serves all sequences unless the RoPE scaling depends on the final
   * length; then each gets its row at admission.
   */
  ropeRows: column('i32', 'sequence'),
  /** Slot of each sequence's states, read for networks that have states; -1: its states are not kept. */
  stateSlots: column('i32', 'sequence'),
  /**
   * Rows at the end of a sequence that are a draft: its states are kept only up to the row before them, and the executor logs what
   * changes them. The next step names how many of these rows were right, which it replays in front of its own. Where they are a
   * draft still, they count as rows of the new one.
   */
  stateDrafts: column('i32', 'sequence'),
  stateReplays: column('i32', 'sequence'),
  /** First snapshot of each sequence's states; written for networks that have states alone. */
  snapshotStart: startColumn('sequence'),
  /** Rows of T after which the states are copied, ascending, and the slots that they are copied to. */
  snapshotRows: column('i32', 'snapshot'),
  snapshotSlots: column('i32', 'snapshot'),
} as const;

/** Flat arrays that are written when a request is admitted, and that all batches share. */
export const ROPE_COLUMNS = {
  /** Inverse frequencies [rows x rotaryDim / 2]. */
  ropeFrequencies: column('f32', 'ropeFrequency'),
  /** Factor on cos and sin for each row of ropeFrequencies. */
  ropeScales: column('f32', 'ropeRow'),
} as const;

export const PACKED_TABLE = new ColumnTable(PACKED_COLUMNS);
export const ROPE_TABLE = new ColumnTable(ROPE_COLUMNS);

/**
 * The rows of one iteration without padding. Context chunks come first, then one row per generating sequence, and one for
 * each token of its draft, each of which has a row of logits too.
 *
 *   sequences      A (context chunk of 5)   B (generation)   C (generation)
 *   tokenIds       a3 a4 a5 a6 a7           b9               c2              [T]
 *   positions       3  4  5  6  7            9                2              [T]  what RoPE turns by: the places, or what
 *                                                                                the request says
 *   slots          where K and V of each token go: block * tokensPerBlock + offset   [T]
 *   queryStart     0              5          6               7               [B + 1]
 *   contextLength  8                         10              3               [B]  tokens in the cache after this step
 *   blockTables    maxBlocks entries per sequence, unused ones 0             [B x maxBlocks]
 *                  (with an attention window they take turns: kvcache/attention-window.ts)
 *   logitRows      4              5          6                               [R]  rows of T whose logits are needed
 *
 * The arrays are allocated once at their greatest size; the counts say how much of each is valid.
 */
export interface PackedBatch extends ColumnArrays<typeof PACKED_COLUMNS>, ColumnArrays<typeof ROPE_COLUMNS> {
  numTokens: number;
  numSequences: number;
  numLogitRows: number;
  /** Blocks that this iteration is the first to write to: their K and V are zeroed before the step writes. */
  numNewBlocks: number;
  /** Entries per sequence in blockTables. */
  readonly maxBlocks: number;
  /** Type of each token [T], for networks that embed it (addEmbedding); absent for all others. */
  readonly tokenTypes?: Int32Array;
  /** Rows whose logits are returned in addition to sampling; absent or empty: none. */
  readonly returnedRows?: readonly ReturnedRows[];
  /** Rows whose ids may name embeddings that the request brought, rows ascending; absent or empty: none. */
  readonly promptTables?: readonly PromptTableRows[];
  /** Slot of the adapter of each sequence [B], see AdapterSlots; -1: none. null or absent: no sequence has one. */
  readonly adapterSlots?: Int32Array | null;
  /**
   * Positions in height and width of each token [T x 2], where `positions` are those in time, for networks that turn by grids. null or
   * absent: all tokens have the same on all axes.
   */
  readonly gridPositions?: Int32Array | null;
  /**
   * Rows that are pictures, for networks whose tokens attend to all of their picture (AttentionMask.withinPictures): first row and number
   * of rows of each [2 x pictures], ascending, each within one sequence. null or absent: there are none.
   */
  readonly pictures?: Int32Array | null;
  /** Rows of tables [T x PLACES_OF_TOKEN] that addEmbedding by places adds for each token, and the share of each; absent for networks without it. */
  readonly places?: Int32Array;
  readonly placeShares?: Float32Array;
  /**
   * First position and end of each token's segment of its sequence [T x 2], for networks that attend by segments; absent for all others.
   * Segments lie one after the other: 0 4, 0 4, 0 4, 0 4, 4 6, 4 6.
   */
  readonly segments?: Int32Array;
  /** Rows for the op rowInput [T x width]; absent for networks without it. */
  readonly rowInputs?: Float32Array;
  /** Memory for the rows of the op keepRows [T x width]; null or absent: they are not wanted. */
  readonly keptRows?: Float32Array | null;
}
