import { plainRule } from '../../../network/expert-rule.js';
import type { PlanOp } from '../../../network/plan.js';
import { type Routing, routeRows } from '../portable/expert-routing.js';
import { ACTIVATIONS } from './kernels.js';
import { ROWS_AT_ONCE } from './memory-layout.js';
import type { RunnerParts } from './runner-parts.js';

type ExpertsOp = Extract<PlanOp, { op: 'experts' }>;

/**
 * Runs mixtures of experts, ROWS_AT_ONCE rows at a time. Experts take turns in ascending order, each with those of the rows that go to it:
 *
 *   inputs of its rows, side by side -> gate, up -> gated (or up -> activated) -> down -> sums of its rows += share * down
 *
 * So each row's sum is over its experts in ascending order. A product gives a row the same bits whatever the
 * other rows are, so the sum has the same bits too, whatever rows go to the same experts.
 */
export class ExpertRows {
  readonly #parts: RunnerParts;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  run(op: ExpertsOp, rows: number): void {
    for (let row = 0; row < rows; row += ROWS_AT_ONCE) {
      this.#pass(op, row, Math.min(ROWS_AT_ONCE, rows - row));
    }
  }

  #pass(op: ExpertsOp, first: number, rows: number): void {
    const { plan, heap, workspace, weights } = this.#parts;
    const { sums } = workspace.experts;
    const count = op.gateUp.length;
    const width = plan.values[op.output]!.width;
    const scores = heap.floatsAt(workspace.values[op.scores]! + 4 * first * count, rows * count);
    const vector = (name: string | undefined) =>
      name === undefined ? null : heap.floatsAt(weights.vectors.get(name)!, count);
    const vectors = { choiceBias: vector(op.choiceBias), shareScales: vector(op.shareScales) };
    const routing = routeRows(scores, rows, { ...plainRule(op), count }, vectors);
    heap.floatsAt(sums, rows * width).fill(0);
    for (let expert = 0; expert < count; expert++) this.#addExpert(op, expert, first, routing);
    const begin = 4 * first * width;
    const residual = op.residual === null ? 0 : workspace.values[op.residual]! + begin;
    const output = workspace.values[op.output]! + begin;
    heap.kernels.finishRows(sums, residual, ACTIVATIONS.none, rows * width, output);
  }

  /** Makes the inputs of the way down, `inner` for each row, of the product. */
  #activate({ ungated, clamped, activation }: ExpertsOp, rows: number, inner: number): void {
    const { heap, workspace } = this.#parts;
    const { product, experts } = workspace;
    const { kernels } = heap;
    if (clamped !== undefined)
      kernels.clampRows(product, rows, inner, clamped.alpha, clamped.limit, experts.gated);
    else if (ungated) kernels.finishRows(product, 0, ACTIVATIONS[activation], rows * inner, experts.gated);
    else kernels.gateRows(product, rows, inner, ACTIVATIONS[activation], experts.gated);
  }

  /** @param first row of the op's values at which the routing begins */
  #addExpert(op: ExpertsOp, expert: number, first: number, { begins, places, shares }: Routing): void {
    const begin = begins[expert]!;
    const count = begins[expert + 1]! - begin;
    if (count === 0) return;
    const { heap, workspace, weights } = this.#parts;
    const { inputs, gated, sums } = workspace.experts;
    const gateUp = weights.products.of(op.gateUp[expert]!, op.biases?.gateUp[expert]);
    const down = weights.products.of(op.down[expert]!, op.biases?.down[expert]);
    const rowOf = (i: number) => Math.floor(places[begin + i]! / op.used);
    const bytes = 4 * gateUp.inputs;
    const input = workspace.values[op.input]! + first * bytes;
    for (let i = 0; i < count; i++) heap.copy(inputs + i * bytes, input + rowOf(i) * bytes, bytes);
    heap.multiply(inputs, gateUp, count, workspace.product);
    this.#activate(op, count, down.inputs);
    heap.multiply(gated, down, count, workspace.product);
    const width = down.outputs;
    for (let i = 0; i < count; i++) {
      const share = shares[places[begin + i]!]!;
      const sum = sums + 4 * rowOf(i) * width;
      heap.kernels.addShare(workspace.product + 4 * i * width, share, width, sum);
    }
  }
}
