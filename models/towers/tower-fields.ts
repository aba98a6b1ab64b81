import type { Activation } from '../../network/plan.js';
import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject } from '../checkpoints/file-reading.js';

/** Activations by the names that configs have for them. */
const ACTIVATIONS = new Map<unknown, Activation>([
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['quick_gelu', 'quickGelu'],
  ['silu', 'silu'],
  ['relu', 'relu'],
]);

/** Sides of pictures and patches in pixels, and patches of a side. */
export const MAX_SIDE = 2 ** 14;

/** A config.json: its own fields, and those of the tower. */
export interface Configs {
  model: string;
  outer: ConfigFields;
  vision: ConfigFields;
  /** Width of the text model. */
  textWidth: number;
}

/** Defaults of a config class of transformers. */
export interface Usual {
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  image: number;
  patch: number;
  activation: string;
  epsilon: number;
}

/** Fields of towers that see pictures of one size, with learned positions. */
export function ofOneSize({ model, vision, textWidth }: Configs, usual: Usual) {
  const channels = vision.integer('num_channels', 1, 16, 3);
  const patch = vision.integer('patch_size', 1, MAX_SIDE, usual.patch);
  const image = vision.integer('image_size', patch, MAX_SIDE, usual.image);
  return {
    model,
    ...heads(vision, 'num_attention_heads', usual),
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, usual.intermediateSize),
    numLayers: vision.integer('num_hidden_layers', 1, LIMITS.layers, usual.numLayers),
    activation: activationOf(vision, 'hidden_act', usual.activation),
    epsilon: vision.positive('layer_norm_eps', usual.epsilon),
    patchWidth: channels * patch ** 2,
    merge: 1,
    inSquares: false,
    positionSide: Math.floor(image / patch),
    anyGrid: false,
    textWidth,
  };
}

export function heads(
  vision: ConfigFields,
  key: string,
  usual: Pick<Usual, 'hiddenSize' | 'numHeads'>,
  width = 'hidden_size',
) {
  const hiddenSize = vision.integer(width, 1, LIMITS.width, usual.hiddenSize);
  const numHeads = vision.integer(key, 1, LIMITS.heads, usual.numHeads);
  if (hiddenSize % (4 * numHeads) === 0) return { hiddenSize, numHeads };
  throw vision.error(width, `a multiple of four times the ${numHeads} attention heads`);
}

export function activationOf(config: ConfigFields, key: string, usual: string): Activation {
  const activation = ACTIVATIONS.get(config.raw(key) ?? usual);
  if (activation === undefined) throw config.error(key, `one of ${[...ACTIVATIONS.keys()].join(', ')}`);
  return activation;
}

/** Layers before the one whose rows a connector reads, of `all`: negative numbers count from the last one. */
export function chosenLayers(outer: ConfigFields, all: number, usual: number): number {
  const layer = outer.integer('vision_feature_layer', -all - 1, all, usual);
  return layer < 0 ? all + 1 + layer : layer;
}

/** A list of whole numbers of layers, ascending. */
export function layersOf(
  vision: ConfigFields,
  key: string,
  usual: readonly number[],
  numLayers: number,
): number[] {
  const layers = vision.raw(key) ?? usual;
  const isRight =
    Array.isArray(layers) &&
    layers.every((layer, i) => Number.isInteger(layer) && layer > (layers[i - 1] ?? -1) && layer < numLayers);
  if (!isRight) throw vision.error(key, `ascending numbers of the ${numLayers} layers`);
  return layers;
}

export function ropeTheta(vision: ConfigFields, usual = 10_000): number {
  const rope = vision.raw('rope_parameters');
  if (rope === undefined) return usual;
  if (!isObject(rope)) throw vision.error('rope_parameters', 'an object');
  return new ConfigFields(`${vision.where}: rope_parameters`, rope).positive('rope_theta', usual);
}
