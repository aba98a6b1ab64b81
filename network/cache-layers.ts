import type { CacheShape } from '../kvcache/cache-shape.js';

/** The caches of so many layers that all keep keys and values of these heads, the one as wide as the other. */
export function equalCaches(numLayers: number, kvHeads: number, headDim: number): CacheShape[] {
  const shape: CacheShape = { kind: 'keysAndValues', kvHeads, keyDim: headDim, valueDim: headDim };
  return Array.from({ length: numLayers }, () => ({ ...shape }));
}

/** Columns of a layer's value with queries, keys and values. */
export function qkvWidth(numHeads: number, { kvHeads, keyDim, valueDim }: CacheShape): number {
  return numHeads * keyDim + kvHeads * (keyDim + valueDim);
}
