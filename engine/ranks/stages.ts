import type { NetworkPlan } from '../../network/plan.js';
import { valuesOf } from '../../network/slot-assignment.js';
import { deal, RankPlanError } from './rank-shape.js';

/** Ops [begin, end) of a plan, and the values that come from the stage before and go to the next; null: none. */
export interface Stage {
  begin: number;
  end: number;
  receives: number | null;
  sends: number | null;
}

/**
 * Cuts a plan into stages of nearly as many layers each, where one value alone is alive: the rows of the hidden state.
 *
 *   embedding | layer 0 | layer 1 || layer 2 | layer 3 | norm, logits        2 stages: the hidden rows go over ||
 *
 * @throws RankPlanError if there are fewer layers than stages, or more than one value is alive between two layers
 */
export function cutIntoStages(plan: NetworkPlan, stages: number): Stage[] {
  const layers = plan.ops.flatMap(({ op }, index) => (op === 'ropeAndCache' ? [index] : []));
  if (layers.length < stages) {
    throw new RankPlanError(
      `This model has ${layers.length} layers, which ${stages} stages cannot share; at most ${layers.length} are possible.`,
    );
  }
  const cuts = deal(layers.length, stages)
    .slice(1)
    .map(({ first }) => cutBefore(plan, layers[first - 1]!, layers[first]!));
  const begins = [{ at: 0, value: null }, ...cuts];
  return begins.map(({ at, value }, stage) => ({
    begin: at,
    end: begins[stage + 1]?.at ?? plan.ops.length,
    receives: value,
    sends: begins[stage + 1]?.value ?? null,
  }));
}

/** The last place between the attention of one layer and that of the next where one value is alive. */
function cutBefore(plan: NetworkPlan, layer: number, next: number): { at: number; value: number } {
  for (let at = next; at > layer; at--) {
    const alive = aliveAt(plan, at);
    if (alive.length === 1) return { at, value: alive[0]! };
  }
  throw new RankPlanError(
    `Between ops ${layer} and ${next} of this model more than one value is alive, so it cannot be cut into stages.`,
  );
}

/** Values that ops before `at` write and ops from `at` on read. */
function aliveAt({ ops, logits }: NetworkPlan, at: number): number[] {
  const written = new Set(ops.slice(0, at).flatMap((op) => valuesOf(op).writes));
  const rewritten = new Set<number>();
  const alive = new Set<number>();
  for (const op of ops.slice(at)) {
    const { reads, writes } = valuesOf(op);
    for (const value of reads) if (written.has(value) && !rewritten.has(value)) alive.add(value);
    for (const value of writes) rewritten.add(value);
  }
  if (written.has(logits) && !rewritten.has(logits)) alive.add(logits);
  return [...alive];
}
