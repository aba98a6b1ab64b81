import type { NetworkPlan, PlanOp } from '../../../network/plan.js';
import { expertWidth } from '../../../network/products.js';
import type { Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import type { NetworkWeights } from './network-weights.js';
import { activate } from './row-ops.js';

/** The greatest number of float32. */
const MAX_NUMBER = 3.4028234663852886e38;

type ExpertsOp = Extract<PlanOp, { op: 'experts' }>;

interface MixtureContext {
  ops: Ops;
  weights: NetworkWeights;
  plan: Pick<NetworkPlan, 'values' | 'weights'>;
  value: (index: number) => Output;
}

/**
 * A mixture of experts without its residual. Every expert computes all rows, whoever goes to it: how many rows a product has would otherwise
 * depend on the other rows of the step, and with their number a row's bits (row-rule.ts). What an expert makes of rows that do not go to it is
 * replaced by zeros, so that not even an infinity of it gets in.
 */
export function mixture(op: ExpertsOp, { ops, weights, plan, value }: MixtureContext): Output {
  const inner = expertWidth(op, plan);
  const columns = new Array<number>(op.gateUp.length).fill(1);
  const { chosen, shares } = route(op, ops, value(op.scores));
  const chosenOf = ops.split(chosen, columns, 1);
  const shareOf = ops.split(shares, columns, 1);
  let sum: Output | null = null;
  for (const [expert, gateUp] of op.gateUp.entries()) {
    // One after the other: TensorFlow would compute the gates of all experts first, and hold them.
    const input = sum === null ? value(op.input) : ops.behind(value(op.input), [sum]);
    const raised = weights.product(input, gateUp);
    const [gate, up] = op.ungated ? [raised] : ops.split(raised, [inner, inner], 1);
    const activated = activate(ops, gate!, op.activation);
    const gated = up === undefined ? activated : ops.mul(activated, up);
    const weighed = ops.mul(weights.product(gated, op.down[expert]!), shareOf[expert]!);
    const own = ops.select(ops.greater(chosenOf[expert]!, ops.float(0)), weighed, ops.float(0));
    sum = sum === null ? own : ops.add(sum, own);
  }
  return sum!;
}

/** Widths of what a mixture has for each row beside the values of the plan. */
export function mixtureWidths(op: ExpertsOp, plan: Pick<NetworkPlan, 'weights'>): number[] {
  return [expertWidth(op, plan), op.used * op.gateUp.length];
}

/**
 * 1 for the experts that a row goes to, else 0, and the shares of all experts [rows x experts]: like routeRows of
 * engine/executors/portable/expert-routing.ts, but in float32.
 */
function route(
  { used, normalize, gateUp }: ExpertsOp,
  ops: Ops,
  scores: Output,
): { chosen: Output; shares: Output } {
  // What is not a number comes behind -infinity.
  const numbers = ops.maximum(scores, ops.float(-MAX_NUMBER));
  const ranked = ops.select(ops.isNan(scores), ops.float(Number.NEGATIVE_INFINITY), numbers);
  const chosen = ops.marks(ops.topColumns(ranked, used), gateUp.length);
  const weights = ops.exp(ops.sub(scores, ops.max(ranked, 1, true)));
  const ofChosen = ops.select(ops.greater(chosen, ops.float(0)), weights, ops.float(0));
  // A score that is not a number leaves no number in its row, wherever it is.
  const counted = normalize ? ops.select(ops.isNan(scores), weights, ofChosen) : weights;
  return { chosen, shares: ops.div(weights, ops.sum(counted, 1, true)) };
}
