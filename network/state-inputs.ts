import type { NetworkPlan, PlanOp } from './plan.js';

/** An op of a plan, or what brings values from other ranks, which changes no state. */
type Op = PlanOp | { op: 'exchange' };

/** Bytes of the inputs that change a sequence's states with one token, in all layers: what an executor logs of a draft's token. */
export function stateInputBytes({
  ops,
  values,
}: Pick<NetworkPlan, 'values'> & { ops: readonly Op[] }): number {
  const width = (value: number) => values[value]!.width;
  return ops.reduce<number>((sum, op) => sum + Float32Array.BYTES_PER_ELEMENT * inputsOf(op, width), 0);
}

function inputsOf(op: Op, width: (value: number) => number): number {
  if (op.op === 'shortConv') return width(op.output);
  if (op.op === 'gatedDelta') return width(op.qkv) + width(op.gates);
  if (op.op === 'selectiveScan') return width(op.input) + op.heads;
  return 0;
}
