import type { LayerShape, ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { LIMITS } from './config-fields.js';
import { attendedLayers } from './gemma4-config.js';
import type { GgufKeys } from './gguf-keys.js';

/** A number of all layers, or one of each. */
function numbersOf(
  keys: GgufKeys,
  key: string,
  numLayers: number,
  most: number,
  fallback?: number,
): ArrayLike<number> {
  if (keys.list(key) !== undefined) return keys.listOfLayers(key, numLayers, most);
  return new Array<number>(numLayers).fill(keys.integer(key, 1, most, fallback));
}

/** Heads and widths of the layers of a Gemma 4, of which those with a window have heads of their own. */
export function shapesOfGemma4(
  keys: GgufKeys,
  numLayers: number,
  windows: readonly (number | null)[],
): LayerShape[] {
  const heads = numbersOf(keys, 'attention.head_count', numLayers, LIMITS.heads);
  const kvHeads = numbersOf(keys, 'attention.head_count_kv', numLayers, LIMITS.heads, heads[0]);
  const widths = numbersOf(keys, 'feed_forward_length', numLayers, LIMITS.width);
  const whole = keys.integer('attention.key_length', 2, LIMITS.heads);
  const local = keys.integer('attention.key_length_swa', 2, LIMITS.heads, whole);
  const values = keys.integer('attention.value_length_swa', 2, LIMITS.heads, local);
  if (values !== local) throw keys.error('attention.value_length_swa', `the key length ${local}`, values);
  const turned = keys.integer('rope.dimension_count_swa', 2, LIMITS.heads, local);
  if (turned !== local) throw keys.error('rope.dimension_count_swa', `the key length ${local}`, turned);
  return Array.from({ length: numLayers }, (_, layer) => ({
    numHeads: heads[layer]!,
    numKvHeads: kvHeads[layer]!,
    headDim: windows[layer] === null ? whole : local,
    intermediateSize: widths[layer]!,
  }));
}

/** What layers of a Gemma 4 share, and what they have of their own. */
export function gemma4OfGguf(
  keys: GgufKeys,
  windows: readonly (number | null)[],
  tensors: ReadonlyMap<string, unknown>,
): Partial<ModelConfig> {
  if (windows.includes(null) && !tensors.has('rope_freqs.weight'))
    throw new CheckpointError(
      `${keys.file}: tensor rope_freqs.weight, by which layers without a window turn a part of their heads, is missing.`,
    );
  const count = keys.integer('attention.shared_kv_layers', 0, windows.length - 1, 0);
  const shared = attendedLayers(count, windows);
  if (shared === null)
    throw keys.error(
      'attention.shared_kv_layers',
      'a number that leaves a layer of each kind before those that share',
      count,
    );
  const keeps = (layer: number) => shared[layer] === layer;
  const asValues = windows.map((_, layer) => keeps(layer) && !tensors.has(`blk.${layer}.attn_v.weight`));
  const width = keys.integer('embedding_length_per_layer_input', 0, LIMITS.width, 0);
  return {
    ...(count > 0 && { cacheLayers: shared }),
    ...(asValues.includes(true) && { keysAsValues: asValues }),
    // The file does not say how it sees: of the published models those without inputs of layers attend both ways.
    ...(width > 0 ? { layerInputWidth: width } : { bothWaysInPictures: 'windowed' as const }),
  };
}
