import type { NetworkBuilder, ValueRef } from '../../network/network-builder.js';
import type { EncoderHead, HeadLayer } from '../encoder-config.js';
import { layerNorm, projection } from './parts.js';

/** Width of the rows that leave an encoder. */
export function headWidth({ layers }: EncoderHead, hiddenSize: number): number {
  return layers.at(-1)?.width ?? hiddenSize;
}

/**
 * Writes what makes one row of a text: pooling, the layers behind it, and the scaling to length 1. The batch's `selectRows` names the
 * first row of each sequence, or its last.
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
  let row = isMean ? net.meanPool(norm(x), pooling === 'weighted') : norm(net.selectRows(x));
  for (const [index, layer] of head.layers.entries())
    row = headLayer(net, row, layer, `head.${index}`, epsilon);
  return head.kind === 'embedding' && head.normalize ? net.normalize(row) : row;
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
