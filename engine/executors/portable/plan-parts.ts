import type { NetworkPlan, PlanOp } from '../../../network/plan.js';

/** The ops of a plan on both sides of the one that selects rows. */
export interface PlanParts {
  /** Over rows of tokens: run once a step. */
  forward: PlanOp[];
  /** The value [T x width] whose rows are selected, and the one [R x width] that they become. */
  selected: { input: number; output: number };
  /** Over rows of logits: run for any rows of the step, as often as is wanted. */
  head: PlanOp[];
}

/** Throws where the network selects no rows: an encoder's come from whole sequences (meanPool). */
export function splitPlan({ architecture, ops }: NetworkPlan): PlanParts {
  const at = ops.findIndex((op) => op.op === 'selectRows');
  const select = ops[at];
  if (select?.op !== 'selectRows') {
    throw new Error(`The network ${architecture} selects no rows of tokens, so it has no head to run apart.`);
  }
  const { input, output } = select;
  return { forward: ops.slice(0, at), selected: { input, output }, head: ops.slice(at + 1) };
}
