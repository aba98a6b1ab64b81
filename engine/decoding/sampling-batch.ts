import { type ColumnArrays, ColumnTable, column, startColumn } from '../../base/columns.js';

/** Which tokens some rows may draw at all. */
export interface TokenMasks {
  /** The mask of each row [R]; -1: the row may draw any token. */
  readonly maskOfRow: Int32Array;
  /** [masks x ceil(vocabSize / 32)]: bit t % 32 of word t / 32 is set where token t may be drawn. May be shared memory. */
  readonly words: Int32Array;
}

/** What every row has. */
export const SAMPLING_COLUMNS = {
  /** 0 = greedy. */
  temperature: column('f32', 'row'),
  /** 1 = off. */
  topP: column('f32', 'row'),
  /** 0 = off. Relative to the most probable token. */
  minP: column('f32', 'row'),
  /** 1 = off; over prompt and generated tokens. */
  repetitionPenalty: column('f32', 'row'),
  /** 0 = off; over generated tokens. */
  presencePenalty: column('f32', 'row'),
  /** 0 = off; over generated tokens. */
  frequencyPenalty: column('f32', 'row'),
  /** 0 = off. */
  topK: column('i32', 'row'),
  /** Which sequence of the request this is (0 unless it asks for several). */
  sequenceIndex: column('i32', 'row'),
  /** Position of the token that is drawn. */
  position: column('i32', 'row'),
  /** n > 0: no n tokens in a row of the history come up a second time; 0 = off. */
  noRepeatNgramSize: column('i32', 'row'),
  /** Log-probs wanted: -1 none, 0 the drawn token's, n > 0 the n most probable ones too. */
  numTopLogProbs: column('i32', 'row'),
  /** Tokens that row r must not draw: banned[bannedStart[r] .. bannedStart[r + 1]), in any order. */
  bannedStart: startColumn('row'),
  banned: column('i32', 'banned'),
  /**
   * Tokens for penalties and n-grams: row r has history[historyStart[r] .. historyStart[r + 1]); empty without either.
   * -1 stands where a prompt has no token of the vocabulary.
   */
  historyStart: startColumn('row'),
  history: column('i32', 'history'),
  /** How many tokens of a row's history belong to its prompt (they come first). */
  historyPromptLength: column('i32', 'row'),
  seed: column('u64', 'row'),
} as const;

/** What rows have where one of them is a beam's. */
export const CANDIDATE_COLUMNS = {
  /**
   * 1: nothing is drawn in this row. Its log-softmax is taken of the logits as they are, what the request changes is done
   * to these log-probs (as Hugging Face's beam search has it: they are not made a distribution again), and topTokens and
   * topLogProbs get the numTopLogProbs (at least 1) greatest. Absent: no row does.
   */
  listsCandidates: column('i32', 'row'),
} as const;

export const SAMPLING_TABLE = new ColumnTable({ ...SAMPLING_COLUMNS, ...CANDIDATE_COLUMNS });

/** What sampling gives back. */
export const OUTPUT_COLUMNS = {
  tokens: column('i32', 'row'),
  /**
   * The most probable tokens of row r are topTokens[topStart[r] .. topStart[r + 1]), as many as numTopLogProbs[r] says;
   * -1 and -Infinity beyond the vocabulary.
   */
  topStart: startColumn('row'),
  topTokens: column('i32', 'topEntry'),
  /** ROW_OK, or why nothing was drawn. */
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
 * Order of operations, that of Hugging Face's processors where these have the same:
 *
 *   masks -> biases -> repetition penalty -> frequency and presence penalty -> bans (repeated n-grams, banned tokens)
 *     -> log-probs (of this distribution, before temperature and truncation)
 *     -> temperature -> top-k -> top-p -> min-p -> draw
 *
 * Ties go to the lowest token id. docs/architecture/sampling.md defines each step.
 */
export interface SamplingBatch
  extends ColumnArrays<typeof SAMPLING_COLUMNS>,
    Partial<ColumnArrays<typeof CANDIDATE_COLUMNS>> {
  numRows: number;
  /** Absent or null where no row has a mask. */
  readonly tokenMasks?: TokenMasks | null;
  /** Values added to the logits of some rows, rows ascending; absent or empty: none. */
  readonly biases?: readonly RowBias[];
  /** Rows that draw against a token of a draft, rows ascending; absent or empty: none. Greedy rows do not. */
  readonly draftRows?: readonly DraftRow[];
}

/**
 * Rejection sampling: with p what the row draws from and q the softmax of `logits`, the token is taken with probability
 * min(1, p / q), else one is drawn from what p has more than q. Either way it is distributed as p.
 */
export interface DraftRow {
  row: number;
  token: number;
  /** What the token was drawn from [vocabSize]: finite or -Infinity, temperature and truncation applied. */
  logits: Float32Array;
}

/** Values that are added to logits. */
export interface LogitBias {
  /** Tokens of the vocabulary; null: all of it, in order. */
  readonly tokens: Int32Array | null;
  /** One for each token: finite, or -Infinity for one that is never drawn. */
  readonly values: Float32Array;
}

export interface RowBias extends LogitBias {
  row: number;
}

/** Status of a sampled row. */
export const ROW_OK = 0;
/** The row's logits held NaN or infinity, or nothing finite to draw from. */
export const ROW_NOT_FINITE = 1;
/** Biases and bans left no token to draw. */
export const ROW_NO_TOKEN_LEFT = 2;

/** What sampling gives back, one entry per row. */
export interface SamplingOutput extends ColumnArrays<typeof OUTPUT_COLUMNS> {}
