import type { PlanOp } from '../../../network/plan.js';
import { headStart, hiddenValue, type NetworkParts, runRowOp } from './forward-graph.js';
import { DType, type Output } from './graph/graph.js';
import type { Variable } from './graph/variable.js';

/** Names of the head's feeds and results. The logits stay on the device until `head/logits` is run. */
export const HEAD = {
  rows: 'head/rows',
  segments: 'head/segments',
  /** Runs over the first rows, and over those after them if there are several passes. */
  first: 'head/first',
  more: 'head/more',
  logits: 'head/logits',
};

/** Writes the ops over rows of logits: they take rows of the forward's result and leave logits [rows, outputWidth]. */
export function writeHead(parts: NetworkParts, logits: Variable): void {
  const { ops, plan } = parts;
  ops.graph.within('head', () => {
    const start = headStart(plan);
    const values = new Map<number, Output>();
    const rows = parts.hidden.gather(ops.graph.placeholder(HEAD.rows, DType.int32, [-1]));
    values.set(hiddenValue(plan), rows);
    for (const op of plan.ops.slice(start)) runHeadOp(op, parts, values, rows);
    const value = values.get(plan.logits)!;
    ops.group([logits.assign(value)], HEAD.first);
    ops.group([logits.assign(ops.concat([logits.read(), value], 0))], HEAD.more);
  });
  ops.identity(logits.read(), DType.float, HEAD.logits);
}

function runHeadOp(
  op: PlanOp,
  { ops, plan, weights }: NetworkParts,
  values: Map<number, Output>,
  rows: Output,
): void {
  if (op.op === 'selectRows') {
    values.set(op.output, rows);
  } else if (op.op === 'meanPool') {
    const segments = ops.graph.placeholder(HEAD.segments, DType.int32, [-1]);
    values.set(op.output, ops.segment('Mean', rows, segments));
  } else {
    runRowOp(op, { ops, weights, plan, values });
  }
}
