/** What of an encoder is not in the dimensions that it shares with decoders. */
export interface EncoderConfig {
  layerNormEpsilon: number;
  /** Rows of the table of token types. */
  tokenTypes: number;
  /** Rows of the table of positions, and the row that a sequence's first token takes: RoBERTa's tables begin with padding. */
  positionRows: number;
  firstPosition: number;
  head: EncoderHead;
}

export type EncoderHead = EmbeddingHead | ScoreHead;

/** An embedding of each text. */
export interface EmbeddingHead {
  kind: 'embedding';
  /** Over all of a text's tokens, or of its first or last one. */
  pooling: 'mean' | 'cls' | 'last';
  /** Whether embeddings are scaled to length 1. */
  normalize: boolean;
  /** Sizes to which the embeddings may be cut (Matryoshka); null: to none. */
  matryoshka: readonly number[] | 'any' | null;
}

/** A cross-encoder: one score of a pair of texts. */
export interface ScoreHead {
  kind: 'score';
  /** Names of the tensors of the layer with tanh over the first token, and of the one that makes the score. */
  tensors: [dense: string, out: string];
  /** What becomes of the score. */
  activation: 'sigmoid' | 'none';
}
