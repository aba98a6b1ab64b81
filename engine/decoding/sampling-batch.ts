/** Which tokens some rows may draw at all. */
export interface TokenMasks {
  /** The mask of each row [R]; -1: the row may draw any token. */
  readonly maskOfRow: Int32Array;
  /** [masks x ceil(vocabSize / 32)]: bit t % 32 of word t / 32 is set where token t may be drawn. May be shared memory. */
  readonly words: Int32Array;
}

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
export interface SamplingBatch {
  numRows: number;
  /** 0 = greedy. */
  readonly temperature: Float32Array;
  /** 0 = off. */
  readonly topK: Int32Array;
  /** 1 = off. */
  readonly topP: Float32Array;
  /** 0 = off. Relative to the most probable token. */
  readonly minP: Float32Array;
  /** 1 = off; over prompt and generated tokens. */
  readonly repetitionPenalty: Float32Array;
  /** 0 = off; over generated tokens. */
  readonly presencePenalty: Float32Array;
  /** 0 = off; over generated tokens. */
  readonly frequencyPenalty: Float32Array;
  readonly seed: BigUint64Array;
  /** Which sequence of the request this is (0 unless it asks for several). */
  readonly sequenceIndex: Int32Array;
  /** Position of the token that is drawn. */
  readonly position: Int32Array;
  /** Tokens that row r must not draw: banned[bannedStart[r] .. bannedStart[r + 1]), in any order. */
  readonly bannedStart: Int32Array;
  readonly banned: Int32Array;
  /** Absent or null where no row has a mask. */
  readonly tokenMasks?: TokenMasks | null;
  /** n > 0: no n tokens in a row of the history come up a second time; 0 = off. */
  readonly noRepeatNgramSize: Int32Array;
  /** Values added to the logits of some rows, rows ascending; absent or empty: none. */
  readonly biases?: readonly RowBias[];
  /**
   * 1: nothing is drawn in this row. Its log-softmax is taken of the logits as they are, what the request changes is done
   * to these log-probs (as Hugging Face's beam search has it: they are not made a distribution again), and topTokens and
   * topLogProbs get the numTopLogProbs (at least 1) greatest. Absent: no row does.
   */
  readonly listsCandidates?: Int32Array;
  /** Rows that draw against a token of a draft, rows ascending; absent or empty: none. Greedy rows do not. */
  readonly draftRows?: readonly DraftRow[];
  /** Log-probs wanted: -1 none, 0 the drawn token's, n > 0 the n most probable ones too. */
  readonly numTopLogProbs: Int32Array;
  /**
   * Tokens for penalties and n-grams: row r has history[historyStart[r] .. historyStart[r + 1]); empty without either.
   * -1 stands where a prompt has no token of the vocabulary.
   */
  readonly historyStart: Int32Array;
  readonly history: Int32Array;
  /** How many tokens of a row's history belong to its prompt (they come first). */
  readonly historyPromptLength: Int32Array;
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
export interface SamplingOutput {
  readonly tokens: Int32Array;
  readonly logProbs: Float32Array;
  /**
   * The most probable tokens of row r are topTokens[topStart[r] .. topStart[r + 1]), as many as numTopLogProbs[r] says;
   * -1 and -Infinity beyond the vocabulary. [R + 1]
   */
  readonly topStart: Int32Array;
  readonly topTokens: Int32Array;
  readonly topLogProbs: Float32Array;
  readonly status: Int32Array;
}
