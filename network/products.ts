import type { NetworkPlan, PlanOp } from './plan.js';

/** A matrix that an op multiplies its rows by; gated: it stacks a gate over what the gate is multiplied with. */
export interface OpProduct {
  weight: string;
  gated: boolean;
}

/** The products of an op, in the order in which executors hold them: none for an op that multiplies by no matrix. */
export function productsOf(op: PlanOp): OpProduct[] {
  switch (op.op) {
    case 'linear':
    case 'gatedLinear':
      return [{ weight: op.weight, gated: op.op === 'gatedLinear' }];
    case 'experts':
      return op.gateUp.flatMap((weight, expert) => [
        { weight, gated: op.ungated !== true },
        { weight: op.down[expert]!, gated: false },
      ]);
    default:
      return [];
  }
}

/** Names of the weights that a plan's ops multiply by. */
export function multipliedWeights({ ops }: Pick<NetworkPlan, 'ops'>): Set<string> {
  return new Set(ops.flatMap((op) => productsOf(op).map(({ weight }) => weight)));
}

/** Width of an expert between its way up and its way down; all experts of an op have the same. */
export function expertWidth(
  { down }: Extract<PlanOp, { op: 'experts' }>,
  { weights }: Pick<NetworkPlan, 'weights'>,
): number {
  return weights.find(({ name }) => name === down[0])!.columns;
}
