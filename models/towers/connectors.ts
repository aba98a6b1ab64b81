import type { ValueRef } from '../../network/network-builder.js';
import { layerNorm, projection } from '../architectures/parts.js';
import type { TowerConfig } from './tower-config.js';
import type { TowerParts } from './tower-parts.js';

/** x += the learned position of each patch. */
export function addPositions(
  { net }: TowerParts,
  { hiddenSize: columns }: TowerConfig,
  x: ValueRef,
  rows: number,
): void {
  const source = { name: 'tower.embeddings.position_embedding.weight', rows, columns };
  net.addEmbedding(x, net.matrix('positions', [source]), 'positions');
}

/** What the connector of a tower with learned positions makes of its rows. */
export function connected(parts: TowerParts, config: TowerConfig, rows: ValueRef): ValueRef {
  const { net } = parts;
  const { connector, merge, textWidth, hiddenSize, epsilon } = config;
  const count = merge ** 2;
  switch (connector.kind) {
    case 'shuffle': {
      const source = 'connector.modality_projection.proj';
      const merged = net.mergeRows(rows, count);
      return net.linear(merged, parts.project('connector', source, merged.width, textWidth, false));
    }
    case 'pool': {
      if (connector.plain) return plainlyPooled(parts, config, net.mergeRows(rows, count, true));
      const weight = { name: 'connector.mm_soft_emb_norm.weight', columns: hiddenSize };
      const mean = net.mergeRows(rows, count, true);
      const normed = net.rmsNorm(mean, net.vector('connectorNorm', [weight]), epsilon);
      return net.linear(
        normed,
        parts.project('connector', 'connector.mm_input_projection', hiddenSize, textWidth, false),
      );
    }
    case 'layers': {
      const { activation, biased } = connector;
      const layers = ['connector.linear_1', 'connector.linear_2'] as const;
      return parts.twoLayers(net.selectRows(rows), 'connector', layers, textWidth, activation, biased);
    }
    case 'normedLayers': {
      const square = net.mergeRows(rows, count);
      const norm = { epsilon: 1e-5, biased: true };
      const normed = layerNorm(net, square, 'connectorNorm', 'connector.layer_norm', norm);
      const layers = ['connector.linear_1', 'connector.linear_2'] as const;
      return parts.twoLayers(normed, 'connector', layers, textWidth, connector.activation);
    }
    case 'mergedLayers': {
      const { activation, biased } = connector;
      const normed = parts.rmsNorm(rows, 'connectorNorm', 'connector.norm', connector.epsilon);
      const square = net.mergeRows(normed, count);
      const source = 'connector.patch_merger.merging_layer';
      const merged = net.linear(
        square,
        parts.project('connectorMerge', source, square.width, hiddenSize, false),
      );
      const layers = ['connector.linear_1', 'connector.linear_2'] as const;
      return parts.twoLayers(merged, 'connector', layers, textWidth, activation, biased);
    }
    case 'class': {
      const normed = parts.norm(net.selectRows(rows), 'connectorNorm', 'tower.post_layernorm');
      const source = 'connector.visual_projection';
      return net.normalize(
        net.linear(normed, parts.project('connector', source, hiddenSize, textWidth, false)),
      );
    }
    case 'probe':
      return net.normalize(probed(parts, config, rows));
    case 'merger':
      throw new Error('A merger belongs to the towers of Qwen.');
  }
}

function plainlyPooled(
  parts: TowerParts,
  { textWidth, hiddenSize, epsilon }: TowerConfig,
  mean: ValueRef,
): ValueRef {
  const { net } = parts;
  net.rmsNormPlain(mean, 0, 1, hiddenSize, epsilon);
  const source = 'connector.embedding_projection';
  return net.linear(mean, parts.project('connector', source, hiddenSize, textWidth, false));
}

/** SigLIP's head: a row that is the same for all pictures attends to the patches, before an MLP. Each patch's row has its queries, of which the first is taken. */
function probed(parts: TowerParts, { hiddenSize }: TowerConfig, rows: ValueRef): ValueRef {
  const { net } = parts;
  const source = 'tower.head';
  const probe = net.embedding(
    net.matrix('probe', [{ name: `${source}.probe`, rows: 1, columns: hiddenSize }]),
  );
  const names = ['q', 'k', 'v'].map((part) => [`${source}.attention.${part}_proj`, hiddenSize] as const);
  const project = (name: string, sources: typeof names) => projection(net, name, hiddenSize, sources, true);
  const queries = net.linear(probe, project('probe.queries', names.slice(0, 1)));
  const keysAndValues = net.linear(rows, project('probe.keysAndValues', names.slice(1)));
  const attended = net.selectRows(parts.attention(net.join(queries, keysAndValues)));
  const output = parts.project('probe.output', `${source}.attention.out_proj`, hiddenSize, hiddenSize);
  const x = net.linear(attended, output);
  const normed = parts.norm(x, 'probe.norm', `${source}.layernorm`);
  parts.addMlp(x, normed, 'probe', [`${source}.mlp.fc1`, `${source}.mlp.fc2`]);
  return x;
}
