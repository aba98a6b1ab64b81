import type { LinearOptions, ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import { projection } from '../architectures/parts.js';
import type { TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/**
 * The towers of Qwen2-VL and Qwen2.5-VL. They see pictures of any size, and know a patch's place by RoPE alone. In most layers of
 * Qwen2.5-VL patches attend within a window of the picture, and its layers norm and gate as those of a text model.
 */
export function qwen2Vision(config: TowerConfig): NetworkPlan {
  const { numLayers, hiddenSize, windows } = config;
  const parts = new TowerParts(config);
  const { net } = parts;
  const isGated = config.kind === 'qwen2.5';
  const norm = (x: ValueRef, name: string, source: string) =>
    isGated ? parts.rmsNorm(x, name, source) : parts.norm(x, name, source);
  const x = parts.patches('tower.patch_embed.proj', false);
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `tower.blocks.${layer}`;
    const input = norm(x, `${own}.attentionNorm`, `${source}.norm1`);
    const qkv = net.linear(
      input,
      parts.project(`${own}.qkv`, `${source}.attn.qkv`, hiddenSize, 3 * hiddenSize),
    );
    const segments = windows !== undefined && !windows.wholeLayers.includes(layer);
    const output = parts.project(`${own}.attentionOutput`, `${source}.attn.proj`, hiddenSize, hiddenSize);
    net.addLinear(x, parts.attention(qkv, { segments }), output);
    const mlpInput = norm(x, `${own}.mlpNorm`, `${source}.norm2`);
    if (isGated) addGatedMlp(parts, config, x, mlpInput, own, `${source}.mlp`);
    else parts.addMlp(x, mlpInput, own, [`${source}.mlp.fc1`, `${source}.mlp.fc2`]);
  }
  const square = net.mergeRows(norm(x, 'merger.norm', 'tower.merger.ln_q'), config.merge ** 2);
  const layers = ['tower.merger.mlp.0', 'tower.merger.mlp.2'] as const;
  return net.build(parts.twoLayers(square, 'merger', layers, square.width, 'gelu'));
}

function addGatedMlp(
  { net }: TowerParts,
  { hiddenSize, intermediateSize, activation }: TowerConfig,
  x: ValueRef,
  input: ValueRef,
  own: string,
  source: string,
): void {
  const project = (name: string, columns: number, rows: number, ways: readonly string[]): LinearOptions => {
    const sources = ways.map((way) => [`${source}.${way}`, rows] as const);
    return projection(net, `${own}.${name}`, columns, sources, true);
  };
  const gateUp = project('gateUp', hiddenSize, intermediateSize, ['gate_proj', 'up_proj']);
  const down = project('down', intermediateSize, hiddenSize, ['down_proj']);
  net.addLinear(x, net.gatedLinear(input, { ...gateUp, activation }), down);
}
