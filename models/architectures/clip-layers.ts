import type { LinearOptions, NetworkBuilder, ValueRef } from '../../network/network-builder.js';
import type { Activation } from '../../network/plan.js';
import { layerNorm, projection } from './parts.js';

/** Dimensions of the layers of CLIP and SigLIP, of those that read texts as of those that see. */
export interface ClipLayers {
  numLayers: number;
  hiddenSize: number;
  intermediateSize: number;
  numHeads: number;
  activation: Activation;
  /** Epsilon of the norms. */
  epsilon: number;
  /** Whether a row attends to those after it too. */
  bothWays: boolean;
  /** Name of the layers' tensors, without the number of a layer. */
  source: string;
}

/** The layers of CLIP and SigLIP, which norm what they read: each sum is written into x. */
export function addClipLayers(net: NetworkBuilder, x: ValueRef, layers: ClipLayers): void {
  const { numLayers, hiddenSize, numHeads, epsilon, bothWays } = layers;
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `${layers.source}.${layer}`;
    const input = layerNorm(net, x, `${own}.attentionNorm`, `${source}.layer_norm1`, {
      epsilon,
      biased: true,
    });
    const sources = ['q', 'k', 'v'].map((part) => [`${source}.self_attn.${part}_proj`, hiddenSize] as const);
    const qkv = net.linear(input, projection(net, `${own}.qkv`, hiddenSize, sources, true));
    const attended = net.attention(qkv, 0, 1 / Math.sqrt(hiddenSize / numHeads), { bothWays });
    const output = [[`${source}.self_attn.out_proj`, hiddenSize]] as const;
    net.addLinear(x, attended, projection(net, `${own}.attentionOutput`, hiddenSize, output, true));
    const mlpInput = layerNorm(net, x, `${own}.mlpNorm`, `${source}.layer_norm2`, { epsilon, biased: true });
    net.addLinear(x, ...mlpParts(net, mlpInput, own, layers, [`${source}.mlp.fc1`, `${source}.mlp.fc2`]));
  }
}

/** The feed-forward layers over normed rows: what the first one raises, and the second one. @param own name in the network @param names of the two tensors */
export function mlpParts(
  net: NetworkBuilder,
  normed: ValueRef,
  own: string,
  {
    hiddenSize,
    intermediateSize,
    activation,
  }: Pick<ClipLayers, 'hiddenSize' | 'intermediateSize' | 'activation'>,
  [up, down]: readonly [string, string],
): [inner: ValueRef, down: LinearOptions] {
  const first = projection(net, `${own}.up`, hiddenSize, [[up, intermediateSize]], true);
  const inner = net.linear(normed, { ...first, activation });
  return [inner, projection(net, `${own}.down`, intermediateSize, [[down, hiddenSize]], true)];
}
