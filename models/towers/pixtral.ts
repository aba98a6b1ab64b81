import type { NetworkPlan } from '../../network/plan.js';
import { projection } from '../architectures/parts.js';
import { connected } from './connectors.js';
import type { TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/** Pixtral's tower: layers of a text model that attend both ways, turned by a patch's row and column, for pictures of any size. */
export function pixtral(config: TowerConfig): NetworkPlan {
  const { numLayers, hiddenSize, intermediateSize, activation } = config;
  const parts = new TowerParts(config);
  const { net } = parts;
  const x = parts.rmsNorm(parts.patches('tower.patch_conv', false), 'embeddingNorm', 'tower.ln_pre');
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `tower.transformer.layers.${layer}`;
    const project = (name: string, columns: number, rows: number, names: readonly string[]) => {
      const sources = names.map((one) => [`${source}.${one}`, rows] as const);
      return projection(net, `${own}.${name}`, columns, sources, false);
    };
    const queries = ['q', 'k', 'v'].map((part) => `attention.${part}_proj`);
    const input = parts.rmsNorm(x, `${own}.attentionNorm`, `${source}.attention_norm`);
    const qkv = net.linear(input, project('qkv', hiddenSize, hiddenSize, queries));
    const output = project('attentionOutput', hiddenSize, hiddenSize, ['attention.o_proj']);
    net.addLinear(x, parts.attention(qkv), output);
    const ways = ['feed_forward.gate_proj', 'feed_forward.up_proj'];
    const gateUp = project('gateUp', hiddenSize, intermediateSize, ways);
    const down = project('down', intermediateSize, hiddenSize, ['feed_forward.down_proj']);
    const mlpInput = parts.rmsNorm(x, `${own}.mlpNorm`, `${source}.ffn_norm`);
    net.addLinear(x, net.gatedLinear(mlpInput, { ...gateUp, activation }), down);
  }
  return net.build(connected(parts, config, x));
}
