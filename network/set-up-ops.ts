import type { NetworkPlan, PlanOp } from './plan.js';
import { valuesOf } from './slot-assignment.js';

/** True for an op that an executor runs once, when it is opened: it makes tables of distances, or values over their buckets. */
export function isSetUp({ values }: Pick<NetworkPlan, 'values'>, op: PlanOp): boolean {
  if (op.op === 'distanceProducts' || op.op === 'distanceBiases') return true;
  return valuesOf(op).writes.some((value) => values[value]!.rows === 'distances');
}

/** Why an executor whose scores depend on no distances cannot compute a plan; null: it can. */
export function scoresByDistance(
  { attention }: Pick<NetworkPlan, 'attention'>,
  executor: string,
): string | null {
  if (attention.distances === undefined) return null;
  return `The ${executor} executor has no scores that depend on the distance of two tokens, as those of MPNet and DeBERTa do.`;
}
