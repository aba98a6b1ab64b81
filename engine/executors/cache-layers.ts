import type { CacheShape } from '../../kvcache/cache-shape.js';
import type { AttentionShape, NetworkPlan } from '../../network/plan.js';

/** Heads that a layer keeps, with keys as wide as values. */
export interface CachedHeads {
  numKvHeads: number;
  headDim: number;
}

/** Heads that a layer keeps, for an executor whose keys are as wide as its values. @throws if they are not */
export function cachedHeads(
  { caches }: Pick<NetworkPlan, 'caches'>,
  layer: number,
  executor: string,
): CachedHeads {
  const { kvHeads, keyDim, valueDim } = caches[layer]!;
  if (keyDim === valueDim) return { numKvHeads: kvHeads, headDim: keyDim };
  throw new Error(
    `The ${executor} executor keeps values as wide as keys, but layer ${layer} of the plan has keys of ${keyDim} and values of ` +
      `${valueDim} numbers.`,
  );
}

/** A plan whose layers all keep the same heads: a network's, or a rank's part of one. */
export type Uniform<Plan extends Pick<NetworkPlan, 'attention'>> = Plan & {
  attention: AttentionShape & CachedHeads;
};

export type UniformPlan = Uniform<NetworkPlan>;

/** The plan with the heads that every layer keeps, for an executor that needs them equal. @throws if layers differ */
export function uniformPlan<Plan extends Pick<NetworkPlan, 'attention' | 'caches'>>(
  plan: Plan,
  executor: string,
): Uniform<Plan> {
  const { caches, attention } = plan;
  if (caches.length !== attention.numLayers || caches.length === 0) {
    throw new Error(
      `The plan has ${caches.length} caches, but ${attention.numLayers} layers that keep something.`,
    );
  }
  const first = cachedHeads(plan, 0, executor);
  for (const [layer, shape] of caches.entries()) {
    const { numKvHeads, headDim } = cachedHeads(plan, layer, executor);
    if (numKvHeads === first.numKvHeads && headDim === first.headDim) continue;
    throw new Error(
      `The ${executor} executor keeps the same in all layers, but layer 0 of the plan keeps ${inWords(caches[0]!)}, and ` +
        `layer ${layer} ${inWords(shape)}; the wasm executor runs such plans.`,
    );
  }
  return { ...plan, attention: { ...attention, ...first } };
}

function inWords({ kvHeads, keyDim }: CacheShape): string {
  return `${kvHeads} ${kvHeads === 1 ? 'head' : 'heads'} of ${keyDim} numbers`;
}
