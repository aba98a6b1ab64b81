import type { LinearOptions, NetworkBuilder, ValueRef } from '../../network/network-builder.js';

/** Projections of one input, stacked into one weight; each source is [name of a tensor without its end, rows]. */
export function projection(
  net: NetworkBuilder,
  own: string,
  columns: number,
  sources: readonly (readonly [source: string, rows: number])[],
  biased: boolean,
): LinearOptions {
  const weight = net.matrix(
    own,
    sources.map(([source, rows]) => ({ name: `${source}.weight`, rows, columns })),
  );
  if (!biased) return { weight };
  const biases = sources.map(([source, rows]) => ({ name: `${source}.bias`, columns: rows }));
  return { weight, bias: net.vector(`${own}.bias`, biases) };
}

/** LayerNorm of x, with or without a bias. @param factor of its weights, when they are converted */
export function layerNorm(
  net: NetworkBuilder,
  x: ValueRef,
  own: string,
  source: string,
  { epsilon, biased, factor = 1 }: { epsilon: number; biased: boolean; factor?: number },
): ValueRef {
  const columns = x.width;
  const weight = net.vector(own, [{ name: `${source}.weight`, columns, ...(factor !== 1 && { factor }) }]);
  const bias = biased ? net.vector(`${own}.bias`, [{ name: `${source}.bias`, columns }]) : null;
  return net.layerNorm(x, weight, bias, epsilon);
}
