import type { LayerShape, ModelConfig } from '../model-config.js';
import { type ConfigFields, ConfigFields as Fields, LIMITS } from './config-fields.js';
import { checkHeads } from './config-values.js';
import type { DecoderFamily, KnownDimensions } from './decoder-family.js';
import { type ExpertFields, expertsOfHuggingFace, refuseExperts } from './experts-config.js';
import { isObject } from './file-reading.js';
import { windowFields, windowsByType } from './layer-windows.js';
import { dimensionsOfLayers } from './openelm-config.js';
import { ropesByType } from './ropes-by-type.js';

const EXPERTS: ExpertFields = {
  count: ['num_experts'],
  usualCount: 128,
  used: 'top_k_experts',
  usualUsed: 8,
  width: 'moe_intermediate_size',
  normalize: 'always',
  shareScales: true,
};

/** Field by which layers have experts. */
const HAS_EXPERTS = 'enable_moe_block';

/** Layers of a window, and in which every sixth and the last one attend to all tokens, with heads of their own. */
export const GEMMA4: DecoderFamily = {
  headDim: 256,
  tied: true,
  activation: ['hidden_activation', 'gelu_pytorch_tanh'],
  ownExperts: EXPERTS,
  read: (config, dimensions) => {
    const { name, numLayers, maxPositions } = dimensions;
    const bothWays = bothWaysOf(config);
    const isUnified = name.startsWith('Gemma4Unified');
    const window = config.integer('sliding_window', 1, LIMITS.positions, isUnified ? 1024 : 512);
    const isSliding = (layer: number) => (layer + 1) % 6 !== 0;
    const windows = windowsByType(config, numLayers, window, isSliding);
    // As transformers has it, whatever layer_types says.
    windows[numLayers - 1] = null;
    const hasExperts = config.boolean(HAS_EXPERTS, false);
    if (!hasExperts) refuseExperts(config, `${name} without ${HAS_EXPERTS}`);
    const width = config.integer('hidden_size_per_layer_input', 0, LIMITS.width, isUnified ? 0 : 256);
    const count = config.integer('num_kv_shared_layers', 0, numLayers - 1, 0);
    const shared = attendedLayers(count, windows);
    if (shared === null)
      throw config.error(
        'num_kv_shared_layers',
        'a number that leaves a layer of each kind before those that share',
      );
    const shapes = layerShapes(config, dimensions, windows, shared);
    return {
      ...windowFields(windows),
      // Layers with a window have another RoPE, even where all layers have one.
      layerWindows: windows,
      ...dimensionsOfLayers(shapes),
      ...(count > 0 && { cacheLayers: shared }),
      ...(sharesKeys(config) && { keysAsValues: windows.map((own) => own === null) }),
      ...(width > 0 && layerInputs(config, width)),
      ...ropesByType(
        config,
        shapes.at(-1)!.headDim,
        maxPositions,
        { theta: 1_000_000, localTheta: 10_000 },
        PROPORTIONAL,
      ),
      attentionScale: 1,
      ...capOfLogits(config),
      ...bothWays,
      ...(hasExperts && { experts: expertsOfHuggingFace(config, name, numLayers, EXPERTS) }),
    };
  },
};

/** RoPE of layers without a window where config.json says nothing. */
const PROPORTIONAL = { rope_type: 'proportional', partial_rotary_factor: 0.25, rope_theta: 1_000_000 };

const sharesKeys = (config: ConfigFields) => config.boolean('attention_k_eq_v', false);

/** Unlike Gemma 3's, layers without a window stay causal (create_masks_for_vision_model of transformers). */
function bothWaysOf(config: ConfigFields): Pick<ModelConfig, 'bothWaysInPictures'> {
  const setting = config.raw('use_bidirectional_attention') ?? null;
  if (setting === 'all')
    throw config.error(
      'use_bidirectional_attention',
      'null or "vision": a token that is written sees none after it',
    );
  return setting === 'vision' ? { bothWaysInPictures: 'windowed' } : {};
}

/** Heads of a layer's keys and values, and their width. */
type CachedHeads = Pick<LayerShape, 'numKvHeads' | 'headDim'>;

/** Heads of all layers: those without a window have their own, and MLPs of layers that keep nothing may be twice as wide. */
function layerShapes(
  config: ConfigFields,
  { numLayers, headDim }: KnownDimensions,
  windows: readonly (number | null)[],
  shared: readonly number[],
): LayerShape[] {
  const numHeads = config.integer('num_attention_heads', 1, LIMITS.heads);
  const numKvHeads = config.integer('num_key_value_heads', 1, LIMITS.heads, numHeads);
  const ofLayer =
    config.raw(BY_LAYER) === undefined
      ? headsByKind(config, { numKvHeads, headDim }, windows)
      : headsByLayer(config, { numKvHeads, headDim }, windows);
  const width = config.integer('intermediate_size', 1, LIMITS.width);
  const isDouble = config.boolean('use_double_wide_mlp', false);
  return Array.from({ length: numLayers }, (_, layer) => {
    const heads = ofLayer(layer);
    checkHeads(config.where, numHeads, heads.numKvHeads, heads.headDim);
    const keeps = shared[layer] === layer;
    return { numHeads, ...heads, intermediateSize: isDouble && !keeps ? 2 * width : width };
  });
}

function headsByKind(
  config: ConfigFields,
  usual: CachedHeads,
  windows: readonly (number | null)[],
): (layer: number) => CachedHeads {
  const hasOwn = config.raw('num_global_key_value_heads') !== undefined && sharesKeys(config);
  const whole = {
    numKvHeads: hasOwn ? config.integer('num_global_key_value_heads', 1, LIMITS.heads) : usual.numKvHeads,
    headDim: config.integer('global_head_dim', 2, LIMITS.heads, 512),
  };
  return (layer) => (windows[layer] === null ? whole : usual);
}

/** Field that transformers 5 writes in place of global_head_dim and num_global_key_value_heads: what differs, by layer. */
const BY_LAYER = 'per_layer_config';

function headsByLayer(
  config: ConfigFields,
  usual: CachedHeads,
  windows: readonly (number | null)[],
): (layer: number) => CachedHeads {
  const byLayer = config.raw(BY_LAYER);
  const error = () =>
    config.error(
      BY_LAYER,
      'head_dim and num_key_value_heads of layers, one head_dim of those that have a window and one of the others',
    );
  const isLayer = (key: string) => /^(?:0|[1-9]\d*)$/.test(key) && Number(key) < windows.length;
  if (!isObject(byLayer) || !Object.keys(byLayer).every(isLayer)) throw error();
  const heads = windows.map((_, layer): CachedHeads => {
    const { [layer]: own = {} } = byLayer as Record<number, unknown>;
    if (!isObject(own) || Object.keys(own).some((key) => key !== 'head_dim' && key !== 'num_key_value_heads'))
      throw error();
    const fields = new Fields(`${config.where}: ${BY_LAYER} of layer ${layer}`, own);
    return {
      numKvHeads: fields.integer('num_key_value_heads', 1, LIMITS.heads, usual.numKvHeads),
      headDim: fields.integer('head_dim', 2, LIMITS.heads, usual.headDim),
    };
  });
  for (const isWhole of [true, false]) {
    const widths = heads.filter((_, layer) => (windows[layer] === null) === isWhole);
    if (widths.some(({ headDim }) => headDim !== widths[0]!.headDim)) throw error();
  }
  return (layer) => heads[layer]!;
}

/**
 * The layer whose keys and values each layer attends to: its own, or of the last `count` layers that of the last layer of their kind before
 * them. Null where there is none of a kind.
 */
export function attendedLayers(count: number, windows: readonly (number | null)[]): number[] | null {
  const own = windows.slice(0, windows.length - count);
  const layers = windows.map((window, layer) => (layer < own.length ? layer : own.lastIndexOf(window)));
  return layers.includes(-1) ? null : layers;
}

function layerInputs(config: ConfigFields, width: number): Partial<ModelConfig> {
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const rows = config.integer('vocab_size_per_layer_input', 1, LIMITS.vocabSize, 262_144);
  if (rows !== vocabSize)
    throw config.error(
      'vocab_size_per_layer_input',
      `vocab_size, which is ${vocabSize}: other tables are not supported`,
    );
  return { layerInputWidth: width };
}

function capOfLogits(config: ConfigFields): Partial<ModelConfig> {
  const cap = config.positiveOrNull('final_logit_softcapping');
  return cap === null ? {} : { outputSoftCap: cap };
}
