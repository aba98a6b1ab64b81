import type { NetworkPlan, PlanOp, PlanValue, Rows } from './plan.js';

/** Indices of the values that an op reads, and of those that it writes. */
export function valuesOf(op: PlanOp): { reads: number[]; writes: number[] } {
  switch (op.op) {
    case 'embedding':
    case 'rowInput':
    case 'distanceRows':
      return { reads: [], writes: [op.output] };
    case 'distanceProducts':
      return { reads: [op.value], writes: [] };
    case 'distanceBiases':
      return { reads: [], writes: [] };
    case 'linear':
      return {
        reads: op.residual === null ? [op.input] : [op.input, op.residual],
        writes: [op.output],
      };
    case 'experts':
      return {
        reads: [op.input, op.scores, ...(op.residual === null ? [] : [op.residual])],
        writes: [op.output],
      };
    case 'addEmbedding':
      return { reads: [op.output], writes: [op.output] };
    case 'addScaled':
      return { reads: [op.input, op.output], writes: [op.output] };
    case 'rmsNorm':
      return {
        reads: op.residual === undefined ? [op.input] : [op.input, op.residual],
        writes: [op.output],
      };
    case 'rmsNormHeads':
    case 'layerNormHeads':
    case 'softCap':
    case 'xielu':
    case 'scale':
    case 'clamp':
    case 'addPromptRows':
      return { reads: [op.value], writes: [op.value] };
    case 'gate':
      return { reads: [op.value, op.by], writes: [op.value] };
    case 'gatedDelta':
      return { reads: [op.qkv, op.gates], writes: [op.output] };
    case 'selectiveScan':
      return { reads: [op.input, op.steps], writes: [op.output] };
    case 'shortConv':
    case 'layerNorm':
    case 'gatedLinear':
    case 'selectRows':
    case 'meanPool':
    case 'normalize':
      return { reads: [op.input], writes: [op.output] };
    case 'join':
      return { reads: [op.input, op.other], writes: [op.output] };
    case 'keepRows':
      return { reads: [op.input], writes: [] };
    case 'ropeAndCache':
      return { reads: [op.qkv], writes: [op.qkv] };
    case 'attention':
      return { reads: [op.qkv], writes: [op.output] };
  }
}

/**
 * Gives each value a slot of the workspace. A slot is free again after the last op that touches its value; an op's
 * output never takes a slot that the same op still reads. `logits`: the value that outlives all ops; -1: none does.
 *
 *   op        embedding  rmsNorm  linear  attention  linear(+x)  rmsNorm ...
 *   slot 0    x --------------------------------------------------------->
 *   slot 1               h ------>        a ---------------->    h ...
 *   slot 2                        qkv -------------->
 */
export function assignSlots<Op = PlanOp>(
  values: readonly { rows: Rows; width: number }[],
  ops: readonly Op[],
  logits: number,
  touchedBy: (op: Op) => { reads: number[]; writes: number[] } = valuesOf as never,
): { values: PlanValue[]; slots: NetworkPlan['slots'] } {
  const lastUse = new Array<number>(values.length).fill(-1);
  for (const [index, op] of ops.entries()) {
    const { reads, writes } = touchedBy(op);
    for (const value of [...reads, ...writes]) lastUse[value] = index;
  }
  if (logits >= 0) lastUse[logits] = ops.length;

  const slots: NetworkPlan['slots'] = [];
  const slotOf = new Array<number>(values.length).fill(-1);
  const free = new Set<number>();
  for (const [index, op] of ops.entries()) {
    const { reads, writes } = touchedBy(op);
    for (const value of writes) {
      if (slotOf[value] === -1) slotOf[value] = takeSlot(slots, free, values[value]!);
    }
    for (const value of new Set([...reads, ...writes])) {
      if (lastUse[value] === index) free.add(slotOf[value]!);
    }
  }
  return { values: values.map(({ rows, width }, i) => ({ rows, width, slot: slotOf[i]! })), slots };
}

/** Takes the narrowest free slot that is wide enough; else the widest free one, grown; else a new one. */
function takeSlot(
  slots: NetworkPlan['slots'],
  free: Set<number>,
  value: { rows: Rows; width: number },
): number {
  let best = -1;
  for (const candidate of free) {
    if (slots[candidate]!.rows !== value.rows) continue;
    if (best === -1 || fitsBetter(slots[candidate]!.width, slots[best]!.width, value.width)) best = candidate;
  }
  if (best === -1) {
    slots.push({ rows: value.rows, width: value.width });
    return slots.length - 1;
  }
  free.delete(best);
  slots[best]!.width = Math.max(slots[best]!.width, value.width);
  return best;
}

function fitsBetter(candidate: number, best: number, wanted: number): boolean {
  if (candidate >= wanted) return best < wanted || candidate < best;
  return best < wanted && candidate > best;
}
