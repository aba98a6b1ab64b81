import { equalCaches } from '../../network/cache-layers.js';
import { type LinearOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import { ropeFrequencies } from '../../network/rope.js';
import type { ModelConfig } from '../model-config.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm, projection } from './parts.js';

/**
 * ModernBERT: an encoder whose layers norm what they read, turn queries and keys, and have a gated MLP. Most layers see a window to both
 * sides, with a RoPE of their own; the others see the whole text.
 *
 *   tokens -> norm -> [norm (not in the first layer) -> attention + x -> norm -> gated MLP + x] ... -> norm -> head
 */
export function modernbert(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation, rope } = config;
  const { attentionBias, mlpBias, normBias = false, layerWindows = [], rmsNormEpsilon: epsilon } = config;
  const encoder = config.encoder!;
  const local = ropeFrequencies({ ...rope, theta: config.localRopeTheta ?? rope.theta });
  const net = new NetworkBuilder({
    architecture: 'modernbert',
    vocabSize,
    outputWidth: headWidth(encoder.head, hiddenSize),
    hiddenSize,
    attention: {
      numLayers: 1,
      numHeads,
      rotaryDim: rope.rotaryDim,
      ropeTables: [[...local.inverseFrequencies]],
    },
    caches: equalCaches(1, numHeads, headDim),
  });

  const norm = (x: ValueRef, name: string, source: string) =>
    layerNorm(net, x, name, source, { epsilon, biased: normBias });
  const project = (
    name: string,
    source: string,
    [rows, columns]: [number, number],
    biased: boolean,
  ): LinearOptions => projection(net, name, columns, [[source, rows]], biased);

  const table = [{ name: 'embeddings.tok_embeddings.weight', rows: vocabSize, columns: hiddenSize }];
  const x = norm(net.embedding(net.matrix('embedding', table)), 'embeddingNorm', 'embeddings.norm');
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`; // in the checkpoint too
    const input = layer === 0 ? x : norm(x, `${own}.attentionNorm`, `${own}.attn_norm`);
    const shape: [number, number] = [3 * hiddenSize, hiddenSize];
    const qkv = net.linear(input, project(`${own}.qkv`, `${own}.attn.Wqkv`, shape, attentionBias));
    const window = layerWindows[layer] ?? null;
    const ropeTable = window === null ? null : 0;
    const attended = net.attention(qkv, 0, 1 / Math.sqrt(headDim), { window, ropeTable, bothWays: true });
    const output = project(
      `${own}.attentionOutput`,
      `${own}.attn.Wo`,
      [hiddenSize, hiddenSize],
      attentionBias,
    );
    net.addLinear(x, attended, output);
    const gateUp = project(`${own}.gateUp`, `${own}.mlp.Wi`, [2 * intermediateSize, hiddenSize], mlpBias);
    const mlpInput = norm(x, `${own}.mlpNorm`, `${own}.mlp_norm`);
    const down = project(`${own}.down`, `${own}.mlp.Wo`, [hiddenSize, intermediateSize], mlpBias);
    net.addLinear(x, net.gatedLinear(mlpInput, { ...gateUp, activation }), down);
  }
  return net.build(
    encoderHead(net, x, encoder.head, epsilon, (rows) => norm(rows, 'finalNorm', 'final_norm')),
  );
}
