import { CheckpointError } from './checkpoint.js';

/** A file's tensor that belongs to a layer: its number, and the tensor's name within the layer. */
export interface LayerTensor {
  file: string;
  /** As the file has it. */
  name: string;
  layer: number;
  part: string;
}

/**
 * Tensors of layers that some files have and nothing computes with: frequencies of RoPE, which the configuration tells, and masks of
 * GPT-2's attention.
 */
const HARMLESS: ReadonlySet<string> = new Set([
  'attn_rot_embd.weight',
  'self_attn.rotary_emb.inv_freq',
  'self_attn.rotary_emb.cos_cached',
  'self_attn.rotary_emb.sin_cached',
  'attn.bias',
  'attn.masked_bias',
]);

/**
 * Refuses a tensor of a layer that is not read: norms, biases or scales that are left out would make other answers without a word.
 * llama.cpp refuses such files too. Layers beyond the model's, which guess further tokens, are left alone.
 */
export function refuseUnread(
  { file, name, layer, part }: LayerTensor,
  { architecture, numLayers }: { architecture: string; numLayers: number },
): void {
  if (layer >= numLayers || HARMLESS.has(part)) return;
  throw new CheckpointError(
    `${file}: tensor ${name} is not supported: ${architecture} is computed without it, and the answers would be others.`,
  );
}
