/** Properties of an encoder beside the dimensions that it shares with decoders. */
export interface EncoderConfig {
  layerNormEpsilon: number;
  /** Number of rows of the table of token types. */
  tokenTypes: number;
  /**
   * Number of rows of the table of positions; firstPosition: row of a sequence's first token, since RoBERTa's tables
   * begin with padding.
   */
  positionRows: number;
  firstPosition: number;
  head: EncoderHead;
}

export type EncoderHead = EmbeddingHead | ScoreHead;

/** Head that makes an embedding of each text. */
export interface EmbeddingHead {
  kind: 'embedding';
  /** Pooling over all tokens of a text, or of its first or last one. */
  pooling: 'mean' | 'cls' | 'last';
  /** True where embeddings are scaled to length 1. */
  normalize: boolean;
  /** Sizes to which the embeddings may be cut (Matryoshka); null: none. */
  matryoshka: readonly number[] | 'any' | null;
}

/** Head of a cross-encoder, which makes one score of a pair of texts. */
export interface ScoreHead {
  kind: 'score';
  /** Names of two layers' tensors: the layer with tanh over the first token, and the one that makes the score. */
  tensors: [dense: string, out: string];
  /** Activation applied to the score. */
  activation: 'sigmoid' | 'none';
}
