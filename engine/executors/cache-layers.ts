import type { CacheShape } from '../../kvcache/cache-shape.js';
import { readsOtherCaches } from '../../network/cache-layers.js';
import type { AttentionShape, NetworkPlan, PlanOp } from '../../network/plan.js';

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
  throw new Error(unequalWords(executor, layer, caches[layer]!));
}

/** Of a plan of which no layer keeps anything of a token. */
const NO_HEADS: CachedHeads = { numKvHeads: 1, headDim: 1 };

/** A plan whose layers all keep the same heads: a network's, or a rank's part of one. */
export type Uniform<Plan extends Pick<NetworkPlan, 'attention'>> = Plan & {
  attention: AttentionShape & CachedHeads;
};

export type UniformPlan = Uniform<NetworkPlan>;

/** The plan with the heads that every layer keeps, if any does, for an executor that needs them equal. @throws if layers differ */
export function uniformPlan<Plan extends Pick<NetworkPlan, 'attention' | 'caches' | 'states'>>(
  plan: Plan,
  executor: string,
): Uniform<Plan> {
  const uneven = unevenLayers(plan, executor);
  if (uneven !== null) throw new Error(uneven);
  const heads = plan.caches.length === 0 ? NO_HEADS : cachedHeads(plan, 0, executor);
  return { ...plan, attention: { ...plan.attention, ...heads } };
}

/** Why an executor whose layers all keep the same heads cannot compute a plan; null: it can. */
export function unevenLayers(
  plan: Pick<NetworkPlan, 'attention' | 'caches' | 'states'>,
  executor: string,
): string | null {
  const { caches, attention } = plan;
  const wrong = wrongCaches(plan, executor);
  if (wrong !== null) return wrong;
  const { layerHeads = [] } = attention;
  const other = layerHeads.findIndex((heads) => heads !== layerHeads[0]);
  if (other !== -1) {
    return (
      `The ${executor} executor has the same heads in all layers, but layer 0 of the plan has ${layerHeads[0]} heads of queries, and ` +
      `layer ${other} ${layerHeads[other]}; the native and the wasm executor run such plans.`
    );
  }
  const [first] = caches;
  const layer = caches.findIndex(
    ({ kvHeads, keyDim }) => kvHeads !== first!.kvHeads || keyDim !== first!.keyDim,
  );
  if (layer === -1) return null;
  return (
    `The ${executor} executor keeps the same in all layers, but layer 0 of the plan keeps ${inWords(first!)}, and ` +
    `layer ${layer} ${inWords(caches[layer]!)}; the native and the wasm executor run such plans.`
  );
}

/** Why an executor whose keys are as wide as its values cannot compute a plan, as far as its caches go; null: it can. */
export function wrongCaches(
  plan: Pick<NetworkPlan, 'attention' | 'caches' | 'states'>,
  executor: string,
): string | null {
  const { caches, attention, states = [] } = plan;
  if (caches.length === 0 && attention.numLayers === 0 && states.length > 0) return null;
  if (caches.length !== attention.numLayers || caches.length === 0)
    return `The plan has ${caches.length} caches, but ${attention.numLayers} layers that keep something.`;
  return unequalWidths(plan, executor);
}

/** Why an executor whose layers all keep something cannot compute a plan; null: each does. */
export function sharedCaches(plan: Pick<NetworkPlan, 'ops'>, executor: string): string | null {
  if (!readsOtherCaches(plan)) return null;
  return `The ${executor} executor has layers that keep their own keys and values, but layers of this model read those of others; the native and the wasm executor run such models.`;
}

/** Why an executor whose keys are as wide as its values cannot compute a plan; null: it can. */
export function unequalWidths({ caches }: Pick<NetworkPlan, 'caches'>, executor: string): string | null {
  const layer = caches.findIndex(({ keyDim, valueDim }) => keyDim !== valueDim);
  return layer === -1 ? null : unequalWords(executor, layer, caches[layer]!);
}

/** Why an executor that keeps no states cannot compute a plan; null: no layer of it has a state. */
export function statefulLayers({ states = [] }: NetworkPlan, executor: string): string | null {
  if (states.length === 0) return null;
  return `The ${executor} executor keeps no states of sequences, which layers of this model need; the native and the wasm executor run such models.`;
}

/** Why an executor that hands no rows from one network to another cannot compute a plan; null: it hands over none. */
export function rowsOfOthers({ ops }: Pick<NetworkPlan, 'ops'>, executor: string): string | null {
  if (!ops.some(({ op }) => op === 'keepRows')) return null;
  return `The ${executor} executor hands no rows from a model to its head that guesses tokens; the native executor runs such models.`;
}

/** Why an executor that takes no rows of pictures cannot compute a plan; null: it is no tower. */
export function rowsOfPictures({ ops }: Pick<NetworkPlan, 'ops'>, executor: string): string | null {
  const takes = (op: PlanOp) =>
    op.op === 'rowInput' ||
    op.op === 'addScaled' ||
    (op.op === 'attention' && op.mask?.segments === true) ||
    (op.op === 'addEmbedding' && op.by === 'places') ||
    (op.op === 'selectRows' && op.rows !== undefined);
  if (!ops.some(takes)) return null;
  return `The ${executor} executor takes no rows of pictures; the native and the wasm executor run the towers of models that see.`;
}

function unequalWords(executor: string, layer: number, { keyDim, valueDim }: CacheShape): string {
  return (
    `The ${executor} executor keeps values as wide as keys, but layer ${layer} of the plan has keys of ${keyDim} and values of ` +
    `${valueDim} numbers.`
  );
}

function inWords({ kvHeads, keyDim }: CacheShape): string {
  return `${kvHeads} ${kvHeads === 1 ? 'head' : 'heads'} of ${keyDim} numbers`;
}
