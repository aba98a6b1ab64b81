import type { NetworkPlan } from '../../network/plan.js';
import { addPositions, connected } from './connectors.js';
import type { TowerConfig } from './tower-config.js';
import { TowerParts } from './tower-parts.js';

/**
 * CLIP's tower, of LLaVA: SigLIP's layers after a first norm, and a row before the patches that is the same for all pictures. Its patch is
 * all zeros, and its type is 1, whose row of the table is added to it. The output has the rows of the patches alone.
 */
export function clip(config: TowerConfig): NetworkPlan {
  const parts = new TowerParts(config);
  const { net } = parts;
  const patches = parts.patches('tower.embeddings.patch_embedding', false);
  const row = { name: 'tower.embeddings.class_embedding', rows: 1, columns: config.hiddenSize };
  net.addEmbedding(patches, net.matrix('firstRow', [{ ...row, factor: 0 }, row]), 'tokenTypes');
  addPositions(parts, config, patches, config.positionSide ** 2 + 1);
  const x = parts.norm(patches, 'embeddingNorm', 'tower.pre_layrnorm');
  parts.addLayers(x);
  return net.build(connected(parts, config, x));
}
