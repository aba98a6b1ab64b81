import type { AttentionMask, NetworkPlan, PlanOp } from './plan.js';

/**
 * What tokens of a picture attend to: up to themselves, as all others do, or all of the picture too. unsupported: the network asks for
 * the latter, and its executor cannot.
 */
export type PictureRule = 'causal' | 'bothWays' | 'unsupported';

type Ops = Pick<NetworkPlan, 'ops'>;

/** True if tokens also attend to what follows them, in all layers: see AttentionMask. */
export function attendsBothWays({ ops }: Ops): boolean {
  return masksOf(ops).some((mask) => mask?.bothWays === true);
}

/** True if tokens of a picture also attend to those of it that follow them, in any layer: a step must not cut a picture. */
export function attendsWithinPictures({ ops }: Ops): boolean {
  return masksOf(ops).some((mask) => mask?.withinPictures === true);
}

/** True if a token's place in its sequence decides which tokens it attends to, in any layer. */
export function attendsByPlace({ ops }: Ops): boolean {
  return masksOf(ops).some((mask) => mask?.bothWays !== true || mask.window !== undefined);
}

/**
 * True if a step must have each of its sequences as a whole: tokens attend to what follows them, or layers write over one
 * another's cache.
 */
export function takesWholeSequences(plan: Ops & Pick<NetworkPlan, 'attention'>): boolean {
  const layers = plan.ops.filter((op) => op.op === 'ropeAndCache' && !op.queriesOnly).length;
  return attendsBothWays(plan) || layers > plan.attention.numLayers;
}

function masksOf(ops: readonly PlanOp[]): (AttentionMask | undefined)[] {
  return ops.flatMap((op) => (op.op === 'attention' ? [op.mask] : []));
}
