import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';

/** A file's tensor that no op reads. */
export interface UnreadTensor {
  file: string;
  /** As the file has it. */
  name: string;
  /** The network's name; in a GGUF the same as `name`. */
  own: string;
}

/** Names of tensors in layers, by the number of the layer and the part of the name after it. */
const IN_LAYER = /^(?:model\.layers|h|blk)\.(\d+)\.(.*)$/;

/**
 * Tensors of layers that some files have and no op reads: frequencies of RoPE, which the configuration gives,
 * masks of GPT-2's attention, and numbers that become part of the configuration: those of an xIELU, and
 * factors of layers.
 */
const HARMLESS_IN_LAYERS: ReadonlySet<string> = new Set([
  'attn_rot_embd.weight',
  'self_attn.rotary_emb.inv_freq',
  'self_attn.rotary_emb.cos_cached',
  'self_attn.rotary_emb.sin_cached',
  'attn.bias',
  'attn.masked_bias',
  'mlp.act_fn.alpha_p',
  'mlp.act_fn.alpha_n',
  'mlp.act_fn.beta',
  'mlp.act_fn.eps',
  'layer_scalar',
  'layer_output_scale.weight',
]);

/** Keys and values of layers that attend to those of other layers. */
const OF_KEYS_AND_VALUES = /^(?:self_attn\.[kv]_(?:proj|norm)|attn_[kv](?:_norm)?)\./;

/** The same outside of layers: numbers of positions, frequencies, and factors of RoPE that are read with the configuration. */
const HARMLESS_OUTSIDE = /(?:^|\.)(?:inv_freq|position_ids)$|^rope_(?:freqs|factors_(?:long|short))\.weight$/;

/** Further layers that guess several tokens at once, which no answer needs. */
const GUESSING = /^(?:model\.)?mtp(?=\.)/;

/**
 * What becomes of a tensor that is not read: null if it says nothing, else the part of the model that is left aside with it.
 * A norm, bias or scale that is left out would change the answers without a word, so it is refused, as llama.cpp does.
 *
 * @throws CheckpointError
 */
export function leftAsidePart(
  { file, name, own }: UnreadTensor,
  {
    architecture,
    numLayers,
    encoder,
    cacheLayers,
  }: Pick<ModelConfig, 'architecture' | 'numLayers' | 'encoder' | 'cacheLayers'>,
): string | null {
  // An encoder's files have the heads that it was trained with.
  const [, layer, part] = IN_LAYER.exec(own) ?? [];
  if (encoder !== undefined && layer === undefined)
    return HARMLESS_OUTSIDE.test(own) ? null : own.split('.')[0]!;
  // Layers beyond the model's guess further tokens too.
  if (layer !== undefined && Number(layer) >= numLayers) return null;
  if (layer === undefined ? HARMLESS_OUTSIDE.test(own) : HARMLESS_IN_LAYERS.has(part!)) return null;
  const sharesCache =
    layer !== undefined && (cacheLayers?.[Number(layer)] ?? Number(layer)) !== Number(layer);
  if (sharesCache && OF_KEYS_AND_VALUES.test(part!)) return null;
  const [guessing] = GUESSING.exec(own) ?? [];
  if (guessing !== undefined) return guessing;
  throw new CheckpointError(
    `${file}: tensor ${name} is not supported: ${architecture} is computed without it, and the answers would be others.`,
  );
}
