import type { CacheShape } from '../kvcache/cache-shape.js';
import type { AttentionShape, NetworkPlan } from './plan.js';

/** Cache shapes of `numLayers` layers that all keep the same heads, with keys as wide as values. */
export function equalCaches(numLayers: number, kvHeads: number, headDim: number): CacheShape[] {
  const shape: CacheShape = { kind: 'keysAndValues', kvHeads, keyDim: headDim, valueDim: headDim };
  return Array.from({ length: numLayers }, () => ({ ...shape }));
}

/** Heads of queries of a layer. */
export function headsOf({ numHeads, layerHeads }: AttentionShape, layer: number): number {
  return layerHeads?.[layer] ?? numHeads;
}

/** Dimensions that RoPE rotates by one of the plan's tables; undefined: by the batch's frequencies. */
export function rotaryDimOf(
  { rotaryDim, ropeTables = [] }: AttentionShape,
  table: number | undefined,
): number {
  return table === undefined ? rotaryDim : 2 * ropeTables[table]!.length;
}

/** True if layers of a plan read what other layers keep. */
export function readsOtherCaches({ ops }: Pick<NetworkPlan, 'ops'>): boolean {
  return ops.some((op) => op.op === 'ropeAndCache' && op.queriesOnly);
}

/** Width of a layer's value that holds queries, keys and values. */
export function qkvWidth(numHeads: number, { kvHeads, keyDim, valueDim }: CacheShape): number {
  return numHeads * keyDim + kvHeads * (keyDim + valueDim);
}
