import type { NetworkPlan, PlanOp } from '../../network/plan.js';

/** The ops of a plan before and after the one that selects rows. */
export interface PlanParts {
  /** Ops over rows of tokens: run once a step. */
  forward: PlanOp[];
  /** The value [T x width] whose rows are selected, and the value [R x width] of the selected rows. */
  selected: { input: number; output: number };
  /** Ops over rows of logits: run for any rows of the step, as often as needed. */
  head: PlanOp[];
}

/** Splits a plan. Throws if the network selects no rows: an encoder's come from whole sequences (meanPool). */
export function splitPlan({ architecture, ops }: NetworkPlan): PlanParts {
  const at = ops.findIndex((op) => op.op === 'selectRows');
  const select = ops[at];
  if (select?.op !== 'selectRows') {
    throw new Error(`The network ${architecture} selects no rows of tokens, so it has no head to run apart.`);
  }
  const { input, output } = select;
  return { forward: ops.slice(0, at), selected: { input, output }, head: ops.slice(at + 1) };
}
