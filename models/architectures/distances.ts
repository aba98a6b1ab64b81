import { debertaBuckets, t5Buckets } from '../../network/distance-buckets.js';
import type { LinearOptions, NetworkBuilder, ValueRef } from '../../network/network-builder.js';
import type { DistanceBuckets } from '../../network/plan.js';
import type { DisentangledPositions, RelativePositions } from '../encoder-config.js';
import { layerNorm, projection } from './parts.js';

/** Buckets of the distances on which scores depend; undefined: they depend on none. */
export function distancesOf(relative: RelativePositions | undefined): DistanceBuckets | undefined {
  if (relative === undefined) return undefined;
  const { buckets, farthest } = relative;
  return relative.kind === 'biases'
    ? t5Buckets(relative.buckets, farthest)
    : debertaBuckets(buckets, farthest);
}

/** Writes MPNet's table of biases, which all layers share. */
export function biasTable(net: NetworkBuilder, numHeads: number, count: number): number {
  const columns = numHeads * count;
  const weight = net.vector('distanceBiases', [{ name: 'encoder.relative_attention_bias.weight', columns }]);
  return net.distanceBiases(weight);
}

/**
 * Writes DeBERTa's tables, one for each layer. Its own projection makes queries and keys of the rows, or another one.
 *
 * @param projectionOf the layer's projection of queries, keys and values, stacked
 */
export function productTables(
  net: NetworkBuilder,
  numLayers: number,
  { count, epsilon, hiddenSize }: { count: number; epsilon: number; hiddenSize: number },
  { withKeys, withQueries, shared, normed }: DisentangledPositions,
  projectionOf: (layer: number) => LinearOptions,
): number[] {
  const source = { name: 'encoder.rel_embeddings.weight', rows: count, columns: hiddenSize };
  const table = net.distanceRows(net.matrix('distances', [source]));
  const rows = normed
    ? layerNorm(net, table, 'distanceNorm', 'encoder.LayerNorm', { epsilon, biased: true })
    : table;
  return Array.from({ length: numLayers }, (_, layer) => {
    const own = shared ? projectionOf(layer) : ownProjection(net, rows, layer, { withKeys, withQueries });
    const keys = withKeys ? (shared || withQueries ? hiddenSize : 0) : null;
    return net.distanceProducts(net.linear(rows, own), { queries: withQueries ? 0 : null, keys });
  });
}

/** The projection of queries over that of keys, as far as there is one. */
function ownProjection(
  net: NetworkBuilder,
  { width }: ValueRef,
  layer: number,
  { withKeys, withQueries }: Pick<DisentangledPositions, 'withKeys' | 'withQueries'>,
): LinearOptions {
  const attention = `encoder.layer.${layer}.attention.self`;
  const sources: [string, number][] = [];
  if (withQueries) sources.push([`${attention}.pos_query_proj`, width]);
  if (withKeys) sources.push([`${attention}.pos_key_proj`, width]);
  return projection(net, `layers.${layer}.distances`, width, sources, true);
}
