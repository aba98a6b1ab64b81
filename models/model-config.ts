import type { ExpertRule } from '../network/expert-rule.js';
import type { ClampedSwiglu, Xielu } from '../network/plan.js';
import type { RopeConfig } from '../network/rope.js';
import type { EncoderConfig } from './encoder-config.js';

/** The experts that layers have in place of one MLP. */
export interface ExpertsConfig extends ExpertRule {
  /** Experts of a layer. */
  count: number;
  /** Width of an expert's MLP. */
  width: number;
  /** Whether each expert has a bias that is added for the choice alone. Absent: none has. */
  choiceBias?: true;
  /** Whether each expert has a factor on its shares. Absent: none has. */
  shareScales?: true;
  /** Whether the scores and the products of each expert have biases. Absent: none has. */
  biased?: true;
  /** What each expert makes of gate and up in place of the activation. */
  clamped?: ClampedSwiglu;
  /** The model's file has an expert's gate and its way up in one matrix: see ExpertNames. */
  stacked?: true;
  /**
   * Width of the MLP that all tokens go to, next to the experts; see ExpertNames for its gate. Absent: there
   * is none.
   */
  sharedWidth?: number;
  /** True for each layer that has experts; the others have one MLP. Absent: all have. */
  layers?: boolean[];
  /** True where layers with experts lack the bias that experts share: GGUF files have none. */
  withoutBias?: true;
}

/** Heads of layers with a selective scan: see the op selectiveScan. */
export interface ScanConfig {
  heads: number;
  headDim: number;
  groups: number;
  stateDim: number;
  /** Whether its projections have biases: the one in, and the one out. */
  biased: { input: boolean; output: boolean };
  /** When its output is normed, each group by itself: after its gate, before it, or never. */
  norm: 'behindGate' | 'beforeGate' | 'none';
  leastStep: number;
  mostStep: number | null;
  /** The model's file has rates less than 0 in place of their logarithms. */
  rates?: true;
}

/**
 * Factors of Falcon-H1 on what its layers add to the sum, besides attentionScale, embeddingScale and
 * logitScale.
 */
export interface Multipliers {
  attentionOut: number;
  /** On the parts of the projection into a scan: its gate, x, B, C and the steps. */
  scanIn: readonly [gate: number, x: number, b: number, c: number, steps: number];
  scanOut: number;
  mlpGate: number;
  mlpDown: number;
}

/** Dimensions of one layer. */
export interface LayerShape {
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  intermediateSize: number;
}

/** Dimensions of a model, the same whether they came from config.json or from GGUF metadata. */
export interface ModelConfig {
  /** Name of the architecture in models/architectures, such as 'llama'. */
  architecture: string;
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  /** Shapes of all layers where they differ; numHeads, numKvHeads, headDim and intermediateSize are the greatest then. */
  layerShapes?: LayerShape[];
  /** The layer whose keys and values each layer attends to, itself where it keeps some. Absent: each keeps its own. */
  cacheLayers?: number[];
  /** True for each layer whose values are its keys before they are normed and turned. Absent: none is. */
  keysAsValues?: boolean[];
  /** Factor of each layer on its output. Absent: 1. */
  layerScales?: number[];
  /** Width of a further input that each layer has of each token, by tables of its own. Absent: there is none. */
  layerInputWidth?: number;
  /** Epsilon of the layers' norms, be they RMSNorm or LayerNorm. */
  rmsNormEpsilon: number;
  /** Whether norms have biases, where families differ in it. Absent: as the family has it. */
  normBias?: boolean;
  /** none: see xielu. */
  activation: 'silu' | 'gelu' | 'geluTanh' | 'quickGelu' | 'relu' | 'reluSquared' | 'none';
  /** Numbers of the xIELU that each layer's MLP has in place of another activation. */
  xielu?: Xielu[];
  /** Biases of queries, keys and values, and of the attention's output where attentionOutputBias does not say otherwise. */
  attentionBias: boolean;
  attentionOutputBias?: boolean;
  mlpBias: boolean;
  /** Whether logits have biases. Absent: they have none. */
  outputBias?: boolean;
  /** Whether each head of queries and keys has a LayerNorm with weights of its own. Absent: false. */
  ownHeadNorms?: boolean;
  /** Whether each head of queries and keys has an RMSNorm, where families differ in it. Absent: false. */
  headNorms?: boolean;
  tieWordEmbeddings: boolean;
  /** Most tokens of a sequence, special ones included. */
  maxPositions: number;
  /**
   * Number of tokens that every layer attends to, as in Mistral, so that no more are kept; null: all, or see
   * layerWindows.
   */
  slidingWindow: number | null;
  /**
   * Number of tokens that each layer attends to, null for all, where layers differ; the cache then keeps all tokens.
   * Absent: layers are alike.
   */
  layerWindows?: (number | null)[];
  /** RoPE of all layers or, where there is a localRopeTheta, of those without a window; the others turn whole heads. */
  rope: RopeConfig;
  localRopeTheta?: number;
  /** True for each layer that turns no queries and keys. Absent: RoPE is in all. */
  layersWithoutRope?: boolean[];
  /** Factor on the products of queries and keys; absent: 1 / sqrt(headDim). */
  attentionScale?: number;
  /** Factors on embeddings, on what each half of a layer adds to the sum, and on logits. Absent: 1. */
  embeddingScale?: number;
  residualScale?: number;
  logitScale?: number;
  /** Whether each head of queries has a further score, which has no value. Absent: none has. */
  sinkLogits?: true;
  /** Cap of attention scores: x becomes cap * tanh(x / cap). Absent: no cap. outputSoftCap is that of logits. */
  attentionSoftCap?: number;
  outputSoftCap?: number;
  /** True for each layer that attends; the others keep a state of the sequence. Absent: all attend. */
  attendingLayers?: boolean[];
  /** Convolutions of layers that do not attend: of this many inputs, and with biases or without. */
  shortConv?: { taps: number; biased: boolean };
  /** Heads of layers with a gated delta rule, and how the model's file has them: see the op gatedDelta. */
  delta?: {
    keyHeads: number;
    valueHeads: number;
    keyDim: number;
    valueDim: number;
    tiled?: true;
    rates?: true;
  };
  /** Absent: no layer has a selective scan. */
  scan?: ScanConfig;
  /** True for each layer that is an MLP alone, and neither attends nor keeps a state. Absent: none is. */
  mlpLayers?: boolean[];
  /** Absent: there are none. */
  multipliers?: Multipliers;
  /**
   * Absent: each layer has one MLP, of intermediateSize. In Granite 4 with scans, layers have that MLP and
   * the experts.
   */
  experts?: ExpertsConfig;
  /** Number of first layers after each of which a part of a picture's rows is added, see addPromptRows. Absent: none. */
  promptLevels?: number;
  /**
   * Layers in which a token of a picture also attends to those of its picture that follow it: all, or those with a window. Absent: none.
   */
  bothWaysInPictures?: 'all' | 'windowed';
  /** True: the engine has the head that guesses tokens, a further layer of the model's files. */
  draftHead?: true;
  bosTokenId: number | null;
  /** Tokens that end a generation; config.json and generation_config.json may name several. */
  eosTokenIds: number[];
  padTokenId: number | null;
  /** Encoder's properties, for models that embed or score texts instead of generating. */
  encoder?: EncoderConfig;
}
