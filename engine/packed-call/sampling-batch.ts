import { type ColumnArrays, ColumnTable, column, startColumn } from '../../base/columns.js';

/** Limits the tokens that some rows may draw. */
export interface TokenMasks {
  /** Index of each row's mask [R]; -1: the row may draw any token. */
  readonly maskOfRow: Int32Array;
  /**
   * Masks [masks x ceil(vocabSize / 32)]: bit t % 32 of word t / 32 is set if token t may be drawn. May be shared memory.
   */
  readonly words: Int32Array;
}

/** Columns that every row has. */
export const SAMPLING_COLUMNS = {
  /** 0: greedy. */
  temperature: column('f32', 'row'),
  /** 1: off. */
  topP: column('f32', 'row'),
  /** 0: off. Relative to the most probable token. */
  minP: column('f32', 'row'),
  /** 1: off. Applies to prompt and generated tokens. */
  repetitionPenalty: column('f32', 'row'),
  /** 0: off. Applies to generated tokens. */
  presencePenalty: column('f32', 'row'),
  /** 0: off. Applies to generated tokens. */
  frequencyPenalty: column('f32', 'row'),
  /** 0: off. */
  topK: column('i32', 'row'),
  /** Index of the sequence within the request (0 unless the request asks for several). */
  sequenceIndex: column('i32', 'row'),
  /** Position of the token that is drawn. */
  position: column('i32', 'row'),
  /** n > 0: no n tokens in a row of the history occur a second time; 0: off. */
  noRepeatNgramSize: column('i32', 'row'),
  /** Log-probs wanted: -1 none, 0 the drawn token's, n > 0 also those of the n most probable tokens. */
  numTopLogProbs: column('i32', 'row'),
  /** Tokens that row r must not draw: banned[bannedStart[r] .. bannedStart[r + 1]), in any order. */
  bannedStart: startColumn('row'),
  banned: column('i32', 'banned'),
  /**
   * Tokens for penalties and n-grams: row r has history[historyStart[r] .. historyStart[r + 1]); empty if it uses
   * neither. -1 stands for an id of the prompt that is no token of the vocabulary.
   */
  historyStart: startColumn('row'),
  history: column('i32', 'history'),
  /** Number of tokens in a row's history that belong to its prompt (they come first). */
  historyPromptLength: column('i32', 'row'),
  seed: column('u64', 'row'),
} as const;

/** Columns that all rows have if one of them is a beam's. */
export const CANDIDATE_COLUMNS = {
  /**
   * 1: nothing is drawn in this row. Instead its log-softmax is taken of the unchanged logits, the request's changes are
   * made to these log-probs (as in Hugging Face's beam search: they are not made a distribution again), and topTokens and
   * topLogProbs get the numTopLogProbs (at least 1) greatest. Absent: no row lists candidates.
   */
  listsCandidates: column('i32', 'row'),
} as const;

export const SAMPLING_TABLE = new ColumnTable({ ...SAMPLING_COLUMNS, ...CANDIDATE_COLUMNS });

/** Columns of sampling's results. */
export const OUTPUT_COLUMNS = {
  tokens: column('i32', 'row'),
  /**
   * The most probable tokens of row r are topTokens[topStart[r] .. topStart[r + 1]), numTopLogProbs[r] of them; -1 and
   * -Infinity beyond the vocabulary.
   */
  topStart: startColumn('row'),
  topTokens: column('i32', 'topEntry'),
  /** ROW_OK, or the reason why nothing was drawn. */
  status: column('i32', 'row'),
  logProbs: column('f32', 'row'),
  topLogProbs: column('f32', 'topEntry'),
} as const;

export const OUTPUT_TABLE = new ColumnTable(OUTPUT_COLUMNS);

/**
 * Sampling parameters of one iteration in flat arrays, one entry per row of logits (R = numRows, in the order of
 * PackedBatch.logitRows). The random numbers are Philox4x32-10 keyed by (seed, sequence index, position, draw),
 * so they never depend on the batch.
 *
 * Order of operations, the same as in Hugging Face's processors where these exist:
 *
 *   masks -> biases -> repetition penalty -> frequency and presence penalty -> penalties (DRY)
 *     -> bans (repeated n-grams, banned tokens)
 *     -> log-probs (of this distribution, before temperature and truncation)
 *     -> temperature -> top-k -> top-p -> min-p -> draw
 *
 * A row with a chain draws by further filters, in the order that sampler-chain.ts gives.
 *
 * Ties go to the lowest token id. docs/architecture/sampling.md defines each step.
 */
export interface SamplingBatch
  extends ColumnArrays<typeof SAMPLING_COLUMNS>,
    Partial<ColumnArrays<typeof CANDIDATE_COLUMNS>> {
  numRows: number;
  /** Absent or null if no row has a mask. */
  readonly tokenMasks?: TokenMasks | null;
  /** Values added to the logits of some rows, rows ascending; absent or empty: none. */
  readonly biases?: readonly RowBias[];
  /**
   * Rows that draw against a token of a draft, rows ascending; absent or empty: none. Greedy rows are never among them.
   */
  readonly draftRows?: readonly DraftRow[];
  /** Added to the logits of some rows after all other penalties, rows ascending; absent or empty: none. */
  readonly penalties?: readonly RowBias[];
  /** Rows that draw by a chain of filters, rows ascending; absent or empty: none. A greedy row takes no notice of it. */
  readonly chains?: readonly RowChain[];
}

/** A row's chain; see sampler-chain.ts. */
export interface RowChain {
  row: number;
  /** [NUM_CHAIN_VALUES]; mirostat's new state is written to it. */
  values: Float64Array;
}

/**
 * Rejection sampling. With p the distribution of the row and q the softmax of `logits`, the token is taken with
 * probability min(1, p / q); otherwise one is drawn from what p has more than q. Either way the result is distributed
 * as p.
 */
export interface DraftRow {
  row: number;
  token: number;
  /** Logits that the token was drawn from [vocabSize]: finite or -Infinity, temperature and truncation applied. */
  logits: Float32Array;
}

/** Values that are added to logits. */
export interface LogitBias {
  /** Tokens of the vocabulary; null: the whole vocabulary, in order. */
  readonly tokens: Int32Array | null;
  /** Value for each token: finite, or -Infinity for a token that is never drawn. */
  readonly values: Float32Array;
}

export interface RowBias extends LogitBias {
  row: number;
}

/** The row was sampled. */
export const ROW_OK = 0;
/** The row's logits held NaN or infinity, or nothing finite to draw from. */
export const ROW_NOT_FINITE = 1;
/** Biases and bans left no token to draw. */
export const ROW_NO_TOKEN_LEFT = 2;

/** Results of sampling, one entry per row. */
export interface SamplingOutput extends ColumnArrays<typeof OUTPUT_COLUMNS> {}
