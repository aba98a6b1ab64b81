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
        { weight, gated: isGatedProduct(op) },
        { weight: op.down[expert]!, gated: false },
      ]);
    default:
      return [];
  }
}

/** Clamping applies after the product, which has gate and up side by side. */
const isGatedProduct = ({ ungated, clamped }: Extract<PlanOp, { op: 'experts' }>): boolean =>
  ungated !== true && clamped === undefined;

type Ops = Pick<NetworkPlan, 'ops' | 'head'>;

/** A network, and its head where it has one. */
export function networksOf(plan: Ops): Ops[] {
  return plan.head === undefined ? [plan] : [plan, plan.head];
}

/** Names of the weights that ops of a plan and of its head multiply by. */
export function multipliedWeights(plan: Ops): Set<string> {
  const ops = networksOf(plan).flatMap((one) => one.ops);
  return new Set(ops.flatMap((op) => productsOf(op).map(({ weight }) => weight)));
}

/** Width of an expert between its way up and its way down; all experts of an op have the same. */
export function expertWidth(
  { down }: Extract<PlanOp, { op: 'experts' }>,
  { weights }: Pick<NetworkPlan, 'weights'>,
): number {
  return weights.find(({ name }) => name === down[0])!.columns;
}
