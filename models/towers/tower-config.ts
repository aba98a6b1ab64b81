import type { Activation } from '../../network/plan.js';

/**
 * The part of a model that sees: a tower makes a row of each patch of a picture, and a connector makes of these the rows that stand in the
 * text model's prompt.
 *
 *   patches [n x patchWidth] -> tower -> [n x hiddenSize] -> connector -> [n / merge^2 x outputWidth]
 *
 * The towers of CLIP and SigLIP alone end with a row for the picture, which is an embedding.
 */
export interface TowerConfig {
  /** Name of the model in config.json's "architectures". */
  model: string;
  /** Kind of its tower: the network that it is. */
  kind: TowerKind;
  connector: Connector;
  hiddenSize: number;
  intermediateSize: number;
  /** Layers that are computed: those before the one whose rows the connector reads. */
  numLayers: number;
  numHeads: number;
  activation: Activation;
  /** Epsilon of the norms. */
  epsilon: number;
  /** Numbers of a patch: channels, of each its frames, of each the rows of pixels. */
  patchWidth: number;
  /** Patches on each side of the square that becomes one row of the output. */
  merge: number;
  /** True where patches come in the order of these squares; false: row by row of the picture. */
  inSquares: boolean;
  /**
   * Rows and columns of the square of positions that the tower has learned, or of the usual picture's patches where it turns by RoPE alone;
   * 0: there is no usual one.
   */
  positionSide: number;
  /** True: any grid of patches is seen; false: that of the positions alone. */
  anyGrid: boolean;
  /** Period of RoPE, by which queries and keys turn with a patch's place; absent: they do not. */
  ropeTheta?: number;
  /** Width of the text model, or of the space that pictures and texts share. */
  textWidth: number;
  /** What layers of InternViT differ in; absent: it is another tower. */
  internVit?: InternVit;
  /** Layers in which patches attend within a part of the picture; absent: there are none. */
  windows?: TowerWindows;
  /** Bounds of what goes into linear layers and comes out, by layer and name; absent: there are none. */
  clips?: Readonly<Record<string, Clips>>[];
  /** True: each column of the last rows has an addend and a factor of its own. */
  isStandardized?: true;
}

export interface InternVit {
  /** Whether queries, keys and values have biases. */
  biased: boolean;
  /** Whether rows of queries and of keys are normed as a whole. */
  headsNormed: boolean;
  /** RMS norms in place of layer norms. */
  rms: boolean;
  /** Whether a layer norm follows the last layer. */
  normsLast: boolean;
}

/** Numbers that a linear layer keeps its input and its output between; null: any. */
export interface Clips {
  input: readonly [least: number, most: number] | null;
  output: readonly [least: number, most: number] | null;
}

/** Linear layers of a layer of Gemma 4's tower, as its files name them. */
export const LINEAR_OF_GEMMA4 = [
  ...['q', 'k', 'v', 'o'].map((part) => `self_attn.${part}_proj`),
  ...['gate', 'up', 'down'].map((part) => `mlp.${part}_proj`),
] as const;

const UNCLIPPED: Clips = { input: null, output: null };

export const clipsOf = ({ clips }: Pick<TowerConfig, 'clips'>, layer: number, name: string): Clips =>
  clips?.[layer]?.[name] ?? UNCLIPPED;

export interface TowerWindows {
  /** Squares on each side of a window. Those at the right and at the bottom of a picture may be smaller. */
  side: number;
  /** Layers in which patches attend to the whole picture, ascending. */
  wholeLayers: readonly number[];
}

export type TowerKind = 'siglip' | 'clip' | 'pixtral' | 'gemma4' | 'internvl' | 'qwen2' | 'qwen2.5' | 'qwen';

/** What leads from the tower's rows to the text model's. */
export type Connector =
  /** SmolVLM's: a linear layer over the rows of a square, side by side. */
  | { kind: 'shuffle' }
  /** Gemma's: the mean over a square, a norm, which in Gemma 4 has no weight, and a linear layer. */
  | { kind: 'pool'; plain?: true }
  /** LLaVA's: two linear layers. */
  | { kind: 'layers'; activation: Activation; biased: boolean }
  /** InternVL's: a norm over the rows of a square, side by side, and two linear layers. */
  | { kind: 'normedLayers'; activation: Activation }
  /**
   * Mistral 3's: a norm with an epsilon of its own, a linear layer that makes of the rows of a square one of the tower's width, and LLaVA's
   * two.
   */
  | { kind: 'mergedLayers'; epsilon: number; activation: Activation; biased: boolean }
  /**
   * Qwen's: a norm, and two linear layers over the rows of a square. levels: layers whose rows go the same way, each by layers of its
   * own; their part of an output row stands after the others.
   */
  | { kind: 'merger'; levels: readonly number[] }
  /** CLIP's of its own: the row before the patches, normed and led into the space of texts, of length 1. */
  | { kind: 'class' }
  /** SigLIP's of its own: a learned row attends to the patches, and becomes a row of length 1. */
  | { kind: 'probe' };

/** Whether a picture becomes one row, an embedding, and none of a prompt. */
export const becomesOneRow = ({ kind }: Connector): boolean => kind === 'class' || kind === 'probe';

/** Width of the rows that a picture becomes: an embedding, and what later layers of the text model add. */
export function pictureRowWidth({
  connector,
  textWidth,
}: Pick<TowerConfig, 'connector' | 'textWidth'>): number {
  return textWidth * (1 + (connector.kind === 'merger' ? connector.levels.length : 0));
}
