import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan, TurnedNorms } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** x += what a layer makes of it: the sum is written in place. */
export type AddLayer = (parts: DecoderParts, x: ValueRef, layer: number) => void;

/**
 * A decoder: embeddings times `scale`, its layers one after the other, the last norm, logits.
 *
 *   embed -> x -> [x + layer] -> [x + layer] ... -> norm -> logits
 */
export function decoder(config: ModelConfig, addLayer: AddLayer, scale = 1): NetworkPlan {
  const parts = new DecoderParts(config);
  const x = parts.embed(scale);
  for (let layer = 0; layer < config.numLayers; layer++) addLayer(parts, x, layer);
  return parts.build(parts.logits(x));
}

/** What is not Llama's in the first half of a layer. */
interface AttentionHalf {
  /** Of queries, keys and values; default none. */
  biased?: boolean;
  /** Of the output; default as `biased`. */
  outputBiased?: boolean;
  /** Norms queries and keys before they turn. */
  norm?: (qkv: ValueRef) => void;
  /** Norms of queries and keys that have turned. */
  turned?: () => TurnedNorms;
}

/** x += attention(norm(x)) */
export function addAttention(
  parts: DecoderParts,
  x: ValueRef,
  layer: number,
  { biased = false, outputBiased = biased, norm, turned }: AttentionHalf,
): void {
  const input = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
  const norms = turned?.();
  const qkv = parts.qkv(input, layer, biased);
  norm?.(qkv);
  parts.net.addLinear(x, parts.attention(qkv, layer, norms), parts.attentionOutput(layer, outputBiased));
}

/** The input of the second half of a layer. */
export function mlpInput(parts: DecoderParts, x: ValueRef, layer: number): ValueRef {
  return parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
}

/** x += the gated MLP of norm(x) */
export function addGatedMlp(parts: DecoderParts, x: ValueRef, layer: number, biased = false): void {
  parts.net.addLinear(x, parts.gatedUp(mlpInput(parts, x, layer), layer, biased), parts.down(layer, biased));
}
