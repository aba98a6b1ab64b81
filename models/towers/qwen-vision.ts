import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { Connector, TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/**
 * The tower of Qwen3-VL and Qwen3.5. It sees pictures of any size: learned positions lie in a square that is stretched over the picture, so
 * that a patch has a share of those of four places, and queries and keys turn by its row and column. What layers of Qwen3-VL make of the
 * patches, the levels, goes to the text model too, which adds it after its own first layers.
 *
 *   output row   | embedding | of the first level | of the second | ...
 */
export function qwenVision(config: TowerConfig): NetworkPlan {
  const { numLayers, hiddenSize, positionSide } = config;
  const { levels } = config.connector as Extract<Connector, { kind: 'merger' }>;
  const parts = new TowerParts(config);
  const { net } = parts;
  let x = parts.patches('tower.patch_embed.proj', true);
  const table = [{ name: 'tower.pos_embed.weight', rows: positionSide ** 2, columns: hiddenSize }];
  net.addEmbedding(x, net.matrix('positions', table), 'places');
  const kept: ValueRef[] = [];
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `tower.blocks.${layer}`;
    const input = parts.norm(x, `${own}.attentionNorm`, `${source}.norm1`);
    const qkv = net.linear(
      input,
      parts.project(`${own}.qkv`, `${source}.attn.qkv`, hiddenSize, 3 * hiddenSize),
    );
    const output = parts.project(`${own}.attentionOutput`, `${source}.attn.proj`, hiddenSize, hiddenSize);
    const attended = parts.attention(qkv);
    // The rows of a level stay as they are until its merger reads them.
    if (kept.at(-1) === x) x = net.sumLinear(x, attended, output);
    else net.addLinear(x, attended, output);
    const mlpInput = parts.norm(x, `${own}.mlpNorm`, `${source}.norm2`);
    parts.addMlp(x, mlpInput, own, [`${source}.mlp.linear_fc1`, `${source}.mlp.linear_fc2`]);
    if (levels.includes(layer)) kept.push(x);
  }
  // Ops over squares come last.
  let rows = merged(
    parts,
    config,
    parts.norm(x, 'merger.norm', 'tower.merger.norm'),
    'merger',
    'tower.merger',
  );
  for (const [level, value] of kept.entries()) {
    const source = `tower.deepstack_merger_list.${level}`;
    rows = net.join(rows, merged(parts, config, value, `levels.${level}`, source, true));
  }
  return net.build(rows);
}

/** Two layers over the rows of each square, side by side, with a norm over all of them where asked for. */
function merged(
  parts: TowerParts,
  { merge }: TowerConfig,
  x: ValueRef,
  name: string,
  source: string,
  norms = false,
): ValueRef {
  const square = parts.net.mergeRows(x, merge ** 2);
  const input = norms ? parts.norm(square, `${name}.norm`, `${source}.norm`) : square;
  const layers = [`${source}.linear_fc1`, `${source}.linear_fc2`] as const;
  return parts.twoLayers(input, name, layers, square.width, 'gelu');
}
