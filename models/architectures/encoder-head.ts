import type { NetworkBuilder, ValueRef } from '../../network/network-builder.js';
import {
  type EncoderHead,
  type HeadLayer,
  TOKEN_LAYERS,
  type TokenLayers,
  tokenWidth,
} from '../encoder-config.js';
import { layerNorm, projection } from './parts.js';

/** Width of the rows that leave an encoder. */
export function headWidth(head: EncoderHead, hiddenSize: number): number {
  return (head.layers.at(-1)?.width ?? hiddenSize) + tokenWidth(head);
}

/**
 * Writes what makes one row of a text: pooling, the layers after it, and the scaling to length 1. The batch's
 * `selectRows` names the first row of each sequence, or its last.
 *
 * @param epsilon of the norms between layers
 * @param norm the network's last norm, over all rows or over those that are left
 */
export function encoderHead(
  net: NetworkBuilder,
  x: ValueRef,
  head: EncoderHead,
  epsilon: number,
  norm: (rows: ValueRef) => ValueRef = (rows) => rows,
): ValueRef {
  const { pooling } = head;
  const isMean = pooling === 'mean' || pooling === 'weighted';
  const rows = isMean ? net.meanPool(norm(x), pooling === 'weighted') : norm(net.selectRows(x));
  let row = rows;
  for (const [index, layer] of head.layers.entries())
    row = headLayer(net, row, layer, `head.${index}`, epsilon);
  if (head.kind !== 'embedding') return row;
  const embedding = head.normalize ? net.normalize(row) : row;
  return head.tokens === undefined ? embedding : withTokens(net, embedding, rows, head.tokens);
}

/** Embeddings, followed by what layers make of the same rows: the vector of a token, and its weight. */
function withTokens(
  net: NetworkBuilder,
  embedding: ValueRef,
  rows: ValueRef,
  { vectors, weights }: TokenLayers,
): ValueRef {
  let joined = embedding;
  if (vectors !== null) {
    const layer = projection(net, 'head.vectors', rows.width, [[TOKEN_LAYERS.vectors, vectors]], true);
    joined = net.join(joined, net.normalize(net.linear(rows, layer)));
  }
  if (!weights) return joined;
  const layer = projection(net, 'head.weights', rows.width, [[TOKEN_LAYERS.weights, 1]], true);
  return net.join(joined, net.linear(rows, { ...layer, activation: 'relu' }));
}

function headLayer(
  net: NetworkBuilder,
  row: ValueRef,
  layer: HeadLayer,
  name: string,
  epsilon: number,
): ValueRef {
  const { tensors, width, biased, activation, norm } = layer;
  const sources = tensors.map((tensor) => [tensor, width / tensors.length] as const);
  const y = net.linear(row, { ...projection(net, name, row.width, sources, biased), activation });
  if (norm === undefined) return y;
  return layerNorm(net, y, `${name}.norm`, norm.tensor, { epsilon, biased: norm.biased });
}
