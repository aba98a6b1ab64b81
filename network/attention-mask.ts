import type { AttentionMask, NetworkPlan, PlanOp } from './plan.js';

type Ops = Pick<NetworkPlan, 'ops'>;

/** True if tokens also attend to what follows them, in all layers: see AttentionMask. */
export function attendsBothWays({ ops }: Ops): boolean {
  return masksOf(ops).some((mask) => mask?.bothWays === true);
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
