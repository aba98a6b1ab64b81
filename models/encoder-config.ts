import type { Activation } from '../network/plan.js';

/** Properties of an encoder besides the dimensions that it shares with decoders. */
export interface EncoderConfig {
  /** True where a token attends also to what follows it; false for a decoder that embeds or scores. */
  bothWays: boolean;
  /** Number of token types: the rows of their table, where there is one. */
  tokenTypes: number;
  /** True where there is no table of token types. */
  withoutTypes?: true;
  /** Width of the tables of embeddings, where a layer leads from it to the hidden size; absent, or the hidden size: there is none. */
  embeddingSize?: number;
  /** Number of rows of the table of learned positions; 0: there is none. */
  positionRows: number;
  /** Row of a sequence's first token, since RoBERTa's tables begin with padding. */
  firstPosition: number;
  /** How scores depend on the distance of two tokens; absent: they do not. */
  relative?: RelativePositions;
  head: EncoderHead;
}

export type RelativePositions = RelativeBiases | DisentangledPositions;

/** MPNet's: a number for each head and each of T5's buckets of distances, the same in all layers. */
export interface RelativeBiases {
  kind: 'biases';
  buckets: number;
  /** Distance from which on all have the last bucket. */
  farthest: number;
}

/** DeBERTa's: rows of a table, one for each bucket of distances, are queries and keys of each layer. */
export interface DisentangledPositions {
  kind: 'disentangled';
  /** Buckets on each side; null: each distance has a row of its own. */
  buckets: number | null;
  /** Greatest distance that differs from those beyond it, plus 1. */
  farthest: number;
  /** Kinds of products: of a query with the key of a distance, of a key with the query of a distance; at least one. */
  withKeys: boolean;
  withQueries: boolean;
  /** True: the layers' own projections make them; false: each layer has others for them. */
  shared: boolean;
  /** True where the table's rows are normed. */
  normed: boolean;
}

export type EncoderHead = EmbeddingHead | ScoreHead | ClassificationHead;

/**
 * How the rows of a text become one: its first token's, its last one's, the mean, or the mean with weights that grow with the
 * position (1 for the first).
 */
export type Pooling = 'mean' | 'cls' | 'last' | 'weighted';

/** A linear layer over pooled rows. */
export interface HeadLayer {
  /** Names of the parts of its weight, `NAME.weight` each, and `NAME.bias` where it is biased; they share its rows evenly. */
  tensors: readonly string[];
  width: number;
  biased: boolean;
  activation: Activation;
  /** LayerNorm after the activation; absent: none. */
  norm?: { tensor: string; biased: boolean };
}

interface PooledHead {
  pooling: Pooling;
  /** Layers over the pooled rows, in order. */
  layers: readonly HeadLayer[];
  /** Token that is passed over at the end of a text where the last one is pooled; absent: none. */
  padding?: number;
}

/** Head that makes an embedding of each text. */
export interface EmbeddingHead extends PooledHead {
  kind: 'embedding';
  /** True where embeddings are scaled to length 1. */
  normalize: boolean;
  /** Sizes to which the embeddings may be cut (Matryoshka); null: none. */
  matryoshka: readonly number[] | 'any' | null;
  /** Texts put in front of a text, by their name. */
  prompts: Readonly<Record<string, string>>;
  /** Name of the prompt that is used where none is asked for; null: none. */
  defaultPrompt: string | null;
  /** What is given of each token; absent: nothing. */
  tokens?: TokenLayers;
  /** Tokens that a text is filled up to with those of padding, which count as its own; absent: it is not. */
  fillsTo?: number;
}

/** Layers over the row of each token, besides the text's embedding: those of BGE-M3. */
export interface TokenLayers {
  /** Width of a token's vector, which has length 1; null: there are none. */
  vectors: number | null;
  /** Whether each token has a weight, which is 0 or more. */
  weights: boolean;
}

/** Names of the layers over tokens, as FlagEmbedding has them for BGE-M3. */
export const TOKEN_LAYERS = { vectors: 'colbert_linear', weights: 'sparse_linear' } as const;

/** Number of values that layers over tokens give for each row, after the embedding's. */
export function tokenWidth(head: EncoderHead): number {
  if (head.kind !== 'embedding' || head.tokens === undefined) return 0;
  return (head.tokens.vectors ?? 0) + Number(head.tokens.weights);
}

/** Name of a single label that has none. */
export const UNNAMED_LABEL = 'LABEL_0';

/** Head of a reranker, which makes one score of a pair of texts. */
export interface ScoreHead extends PooledHead {
  kind: 'score';
  /** Activation applied to the score. */
  activation: 'sigmoid' | 'none';
  /** Name of the label that the score is of; absent: UNNAMED_LABEL. */
  label?: string;
  /**
   * Tokens whose logits make the score, the first's less the second's; null in place of the second: the first's alone. Absent: the
   * last layer makes it.
   */
  tokens?: readonly [yes: number, no: number | null];
  /** Instruction for the chat template, where pairs go through one; absent: the template's own. */
  instruction?: string;
}

/** Head of a classifier, which makes a logit of each label from a text or a pair of texts. */
export interface ClassificationHead extends PooledHead {
  kind: 'classification';
  /** Names of the labels, in the order of the logits. */
  labels: readonly string[];
  /** What makes scores of the logits: one label is right, any number of them may be, or they are themselves what is asked for. */
  activation: 'softmax' | 'sigmoid' | 'none';
}
