import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import { addPositions, connected } from './connectors.js';
import type { TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/** SigLIP, of SmolVLM, Idefics 3 and Gemma 3: layers that norm what they read, learned positions, and a last norm. */
export function siglip(config: TowerConfig): NetworkPlan {
  const parts = new TowerParts(config);
  const x: ValueRef = parts.patches('tower.embeddings.patch_embedding', true);
  addPositions(parts, config, x, config.positionSide ** 2);
  parts.addLayers(x);
  const rows = parts.norm(x, 'finalNorm', 'tower.post_layernorm');
  return parts.net.build(connected(parts, config, rows));
}
