import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import { projection } from '../architectures/parts.js';
import { addPositions, connected } from './connectors.js';
import type { TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/**
 * InternViT, of InternVL: layers whose outputs are scaled column by column before they are added, learned positions, and a row before the
 * patches as in CLIP. The bias of the patches is the row of their type, since that first row has none.
 */
export function internVl(config: TowerConfig): NetworkPlan {
  const { hiddenSize, numLayers, internVit } = config;
  const { biased, headsNormed, rms } = internVit!;
  const parts = new TowerParts(config);
  const { net } = parts;
  const norm = (x: ValueRef, name: string, source: string) =>
    rms ? parts.rmsNorm(x, name, source) : parts.norm(x, name, source);
  const addScaled = (x: ValueRef, output: ValueRef, name: string, source: string) =>
    net.addScaled(x, output, net.vector(name, [{ name: source, columns: hiddenSize }]));
  const x = parts.patches(PATCHES, false);
  const row = (name: string) => ({ name, rows: 1, columns: hiddenSize });
  const types = [row(`${PATCHES}.bias`), row('tower.embeddings.cls_token')];
  net.addEmbedding(x, net.matrix('firstRow', types), 'tokenTypes');
  addPositions(parts, config, x, config.positionSide ** 2 + 1);
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `tower.encoder.layer.${layer}`;
    const input = norm(x, `${own}.attentionNorm`, `${source}.layernorm_before`);
    const sources = ['q', 'k', 'v'].map((part) => [`${source}.attention.${part}_proj`, hiddenSize] as const);
    const qkv = net.linear(input, projection(net, `${own}.qkv`, hiddenSize, sources, biased));
    if (headsNormed)
      for (const [i, part] of ['q', 'k'].entries()) {
        const scales = { name: `${source}.attention.${part}_norm.weight`, columns: hiddenSize };
        net.rmsNormColumns(qkv, i * hiddenSize, net.vector(`${own}.${part}Norm`, [scales]), 1e-6);
      }
    const output = `${source}.attention.projection_layer`;
    const projected = parts.project(`${own}.attentionOutput`, output, hiddenSize, hiddenSize);
    addScaled(x, net.linear(parts.attention(qkv), projected), `${own}.attentionScale`, `${source}.lambda_1`);
    const mlpInput = norm(x, `${own}.mlpNorm`, `${source}.layernorm_after`);
    const made = parts.mlp(mlpInput, own, [`${source}.mlp.fc1`, `${source}.mlp.fc2`]);
    addScaled(x, made, `${own}.mlpScale`, `${source}.lambda_2`);
  }
  const rows = internVit!.normsLast ? parts.norm(x, 'finalNorm', 'tower.layernorm') : x;
  return net.build(connected(parts, config, rows));
}

const PATCHES = 'tower.embeddings.patch_embeddings.projection';
