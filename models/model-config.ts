import type { RopeConfig } from '../network/rope.js';
import type { EncoderConfig } from './encoder-config.js';

/** Dimensions of a model, the same whether they came from config.json or from GGUF metadata. */
export interface ModelConfig {
  /** Key of models/architectures, such as 'llama'. */
  architecture: string;
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  /** Epsilon of RMSNorm; for an encoder and for GPT-2 that of LayerNorm. */
  rmsNormEpsilon: number;
  activation: 'silu' | 'gelu' | 'geluTanh' | 'relu';
  attentionBias: boolean;
  mlpBias: boolean;
  tieWordEmbeddings: boolean;
  /** Tokens of a sequence, special ones included. */
  maxPositions: number;
  /** Tokens that every layer attends to, as Mistral has it, so that no more are kept; null: all, or see layerWindows. */
  slidingWindow: number | null;
  /** Tokens that each layer attends to where layers differ, null: all. All are kept then. Absent: layers are alike. */
  layerWindows?: (number | null)[];
  /** RoPE of all layers; where localRopeTheta is there, of those without a window. */
  rope: RopeConfig;
  localRopeTheta?: number;
  /** Factor on the products of queries and keys; absent: 1 / sqrt(headDim). */
  attentionScale?: number;
  /** Attention scores and logits stay below these: x becomes cap * tanh(x / cap). Absent: they are not capped. */
  attentionSoftCap?: number;
  outputSoftCap?: number;
  bosTokenId: number | null;
  /** Tokens that end a generation; config.json and generation_config.json may name several. */
  eosTokenIds: number[];
  padTokenId: number | null;
  /** There for models that embed or score texts instead of generating. */
  encoder?: EncoderConfig;
}
