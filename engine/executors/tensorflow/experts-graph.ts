import { SPARSE_USED } from '../../../network/expert-rule.js';
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
 * A mixture of experts without its residual. Every expert computes all rows, whichever are routed to it: how
 * many rows a product has would otherwise depend on the other rows of the step, and with their number a row's
 * bits (row-rule.ts). What an expert makes of rows that do not go to it is replaced by zeros, so that not
 * even an infinity of it gets in.
 */
export function mixture(op: ExpertsOp, { ops, weights, plan, value }: MixtureContext): Output {
  const inner = expertWidth(op, plan);
  const columns = new Array<number>(op.gateUp.length).fill(1);
  const bias = op.choiceBias === undefined ? null : weights.vector(op.choiceBias);
  const scales = op.shareScales === undefined ? null : weights.vector(op.shareScales);
  const { chosen, shares } = route(op, ops, value(op.scores), { bias, scales });
  const chosenOf = ops.split(chosen, columns, 1);
  const shareOf = ops.split(shares, columns, 1);
  let sum: Output | null = null;
  for (const [expert, gateUp] of op.gateUp.entries()) {
    // One after the other: TensorFlow would compute the gates of all experts first, and hold them.
    const input = sum === null ? value(op.input) : ops.behind(value(op.input), [sum]);
    const product = (x: Output, matrix: string, bias: string | undefined) => {
      const y = weights.product(x, matrix);
      return bias === undefined ? y : ops.add(y, weights.vector(bias));
    };
    const raised = product(input, gateUp, op.biases?.gateUp[expert]);
    const [gate, up] = op.ungated ? [raised] : ops.split(raised, [inner, inner], 1);
    const gated = innerOf(op, ops, gate!, up);
    const down = product(gated, op.down[expert]!, op.biases?.down[expert]);
    const weighed = ops.mul(down, shareOf[expert]!);
    const own = ops.select(ops.greater(chosenOf[expert]!, ops.float(0)), weighed, ops.float(0));
    sum = sum === null ? own : ops.add(sum, own);
  }
  return sum!;
}

/** What the way down gets; up undefined: experts have no gate. */
function innerOf({ clamped, activation }: ExpertsOp, ops: Ops, gate: Output, up: Output | undefined): Output {
  if (clamped === undefined || up === undefined) {
    const activated = activate(ops, gate, activation);
    return up === undefined ? activated : ops.mul(activated, up);
  }
  const [most, least] = [ops.float(clamped.limit), ops.float(-clamped.limit)];
  const bounded = ops.minimum(gate, most);
  const share = ops.sigmoid(ops.mul(ops.float(clamped.alpha), bounded));
  const raised = ops.add(ops.maximum(ops.minimum(up, most), least), ops.float(1));
  return ops.mul(ops.mul(bounded, share), raised);
}

/** Widths of what a mixture has for each row besides the values of the plan. */
export function mixtureWidths(op: ExpertsOp, plan: Pick<NetworkPlan, 'weights'>): number[] {
  return [expertWidth(op, plan), op.used * op.gateUp.length];
}

/**
 * 1 for the experts that a row goes to, else 0, and the shares of all experts [rows x experts]: like routeRows of
 * engine/executors/portable/expert-routing.ts, but in float32.
 */
function route(
  op: ExpertsOp,
  ops: Ops,
  scores: Output,
  { bias, scales }: { bias: Output | null; scales: Output | null },
): { chosen: Output; shares: Output } {
  const { used, normalize, gateUp, scoring, groups, factor = 1, sumEpsilon = 0 } = op;
  const ranked = inOrder(ops, scores);
  if (scoring === 'sparsemixer') return sparseRoute(op, ops, scores, ranked);
  const chances =
    scoring === 'sigmoid' ? ops.sigmoid(scores) : ops.exp(ops.sub(scores, ops.max(ranked, 1, true)));
  const isPlain = bias === null && groups === undefined;
  const values = isPlain ? ranked : choiceValues(op, ops, chances, bias);
  const chosen = ops.marks(ops.topColumns(values, used), gateUp.length);
  const isChosen = ops.greater(chosen, ops.float(0));
  // A score that is not a number leaves no number in its row, wherever it is.
  const whole = ops.sum(ops.select(ops.isNan(scores), scores, ops.float(0)), 1, true);
  const ofChosen = ops.select(isChosen, chances, ops.float(0));
  const sum = ops.sum(normalize ? ofChosen : chances, 1, true);
  const divisor = scoring === 'sigmoid' && !normalize ? ops.float(1) : ops.add(sum, ops.float(sumEpsilon));
  const divided = ops.div(chances, ops.add(divisor, whole));
  const shares = factor === 1 ? divided : ops.mul(divided, ops.float(factor));
  return { chosen, shares: scales === null ? shares : ops.mul(shares, scales) };
}

/** As `route`, by sparsemixer. @param ranked the scores in the order in which experts are chosen */
function sparseRoute(
  { gateUp, jitter = 0, factor = 1 }: ExpertsOp,
  ops: Ops,
  scores: Output,
  ranked: Output,
): { chosen: Output; shares: Output } {
  const [none, zero] = [ops.float(Number.NEGATIVE_INFINITY), ops.float(0)];
  const first = ops.greater(ops.marks(ops.topColumns(ranked, 1), gateUp.length), zero);
  const rest = ops.select(first, none, ranked);
  const size = ops.maximum(scores, ops.sub(zero, scores));
  const near = (highest: Output) => {
    const distance = ops.div(ops.sub(highest, scores), ops.maximum(size, highest));
    return ops.select(ops.greater(distance, ops.float(2 * jitter)), zero, ops.exp(ops.sub(scores, highest)));
  };
  const ofFirst = ops.sum(near(ops.max(ranked, 1, true)), 1, true);
  const ofSecond = ops.sum(ops.select(first, zero, near(ops.max(rest, 1, true))), 1, true);
  const chosen = ops.marks(ops.topColumns(ranked, SPARSE_USED), gateUp.length);
  const divisors = ops.select(first, ofFirst, ofSecond);
  const whole = ops.sum(ops.select(ops.isNan(scores), scores, zero), 1, true);
  return { chosen, shares: ops.div(ops.float(factor), ops.add(divisors, whole)) };
}

/** Numbers in the order in which they are chosen: what is not a number comes after -infinity. */
function inOrder(ops: Ops, values: Output): Output {
  const numbers = ops.maximum(values, ops.float(-MAX_NUMBER));
  return ops.select(ops.isNan(values), ops.float(Number.NEGATIVE_INFINITY), numbers);
}

/** What experts are chosen by where they have a bias, or lie in groups: those of other groups come last. */
function choiceValues(
  { scoring, groups, gateUp }: ExpertsOp,
  ops: Ops,
  weights: Output,
  bias: Output | null,
): Output {
  const chances = scoring === 'sigmoid' ? weights : ops.div(weights, ops.sum(weights, 1, true));
  const values = inOrder(ops, bias === null ? chances : ops.add(chances, bias));
  if (groups === undefined) return values;
  const size = gateUp.length / groups.count;
  const byGroup = ops.reshape(values, [-1, size]);
  const highest = ops.greater(ops.marks(ops.topColumns(byGroup, groups.top), size), ops.float(0));
  const sums = ops.sum(ops.select(highest, byGroup, ops.float(0)), 1);
  const ofRow = ops.reshape(sums, [-1, groups.count]);
  const open = ops.reshape(ops.marks(ops.topColumns(ofRow, groups.used), groups.count), [-1, 1]);
  const reached = ops.select(ops.greater(open, ops.float(0)), byGroup, ops.float(Number.NEGATIVE_INFINITY));
  return ops.reshape(reached, [-1, gateUp.length]);
}
