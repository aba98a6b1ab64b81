import type { PlanOp } from '../../../network/plan.js';
import type { RunnerParts } from './runner-parts.js';

type GatedDelta = Extract<PlanOp, { op: 'gatedDelta' }>;
type SelectiveScan = Extract<PlanOp, { op: 'selectiveScan' }>;

/** Rows of an op with heads: where the first row's inputs and output are, and how far the next one is, in floats. */
export interface HeadRows {
  inputs: number;
  stride: number;
  /** Of the delta rule factors of each head; of a scan its step. */
  gates: number;
  gateStride: number;
  y: number;
  yStride: number;
}

/** Floats of a head's factors: the share of its state that a token keeps, and that of its change which it takes over. */
export const FACTORS = 2;

/** Writes what each head of each row keeps of its state, and takes over of its change; exponentials in double precision. */
export function writeDeltaFactors(
  { heap, workspace, weights }: RunnerParts,
  op: GatedDelta,
  numTokens: number,
): void {
  const heads = op.valueHeads;
  const vector = (name: string) => heap.floatsAt(weights.vectors.get(name)!, heads);
  const [decay, bias] = [vector(op.decay), vector(op.decayBias)];
  const gates = heap.floatsAt(workspace.values[op.gates]!, 2 * heads * numTokens);
  const factors = heap.floatsAt(workspace.delta.factors, FACTORS * heads * numTokens);
  const rates = Array.from(decay, (rate) => (op.rates ? rate : -Math.exp(rate)));
  for (let row = 0; row < numTokens; row++) {
    const at = 2 * heads * row;
    for (let head = 0; head < heads; head++) {
      const x = gates[at + heads + head]! + bias[head]!;
      const softplus = x > 30 ? x : Math.log1p(Math.exp(x));
      factors[at + FACTORS * head] = Math.exp(rates[head]! * softplus);
      factors[at + FACTORS * head + 1] = 1 / (1 + Math.exp(-gates[at + head]!));
    }
  }
}

/** All heads of the delta rule over the first `count` rows. */
export function deltaRows(
  { heap, workspace }: RunnerParts,
  op: GatedDelta,
  state: number,
  rows: HeadRows,
  count: number,
): void {
  const { keyHeads, valueHeads, keyDim, valueDim } = op;
  for (let head = 0; head < valueHeads; head++) {
    const keyHead = op.tiled ? head % keyHeads : Math.floor(head / (valueHeads / keyHeads));
    const query = rows.inputs + 4 * keyHead * keyDim;
    heap.kernels.gatedDelta(
      query,
      query + 4 * keyHeads * keyDim,
      rows.inputs + 4 * (2 * keyHeads * keyDim + head * valueDim),
      rows.stride,
      rows.gates + 4 * FACTORS * head,
      rows.gateStride,
      keyDim,
      valueDim,
      op.epsilon,
      state + 4 * head * keyDim * valueDim,
      count,
      rows.y + 4 * head * valueDim,
      rows.yStride,
      workspace.delta.keys,
    );
  }
}

/** All heads of a scan over the first `count` rows. */
export function scanRows(
  { heap, weights }: RunnerParts,
  op: SelectiveScan,
  state: number,
  rows: HeadRows,
  count: number,
): void {
  const { heads, headDim, groups, stateDim, leastStep, mostStep } = op;
  const vector = (name: string) => heap.floatsAt(weights.vectors.get(name)!, heads);
  const [decay, bias, skip] = [vector(op.decay), vector(op.stepBias), vector(op.skip)];
  for (let head = 0; head < heads; head++) {
    const group = Math.floor(head / (heads / groups));
    const b = rows.inputs + 4 * (heads * headDim + group * stateDim);
    heap.kernels.selectiveScan(
      rows.inputs + 4 * head * headDim,
      b,
      b + 4 * groups * stateDim,
      rows.stride,
      rows.gates + 4 * head,
      rows.gateStride,
      op.rates ? decay[head]! : -Math.exp(decay[head]!),
      bias[head]!,
      skip[head]!,
      leastStep,
      mostStep ?? Number.POSITIVE_INFINITY,
      headDim,
      stateDim,
      state + 4 * head * headDim * stateDim,
      count,
      rows.y + 4 * head * headDim,
      rows.yStride,
    );
  }
}
