import type { PlanOp } from '../../../network/plan.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import { type StateRowCounts, stateRowCounts } from '../portable/state-row-counts.js';
import { ACTIVATIONS } from './kernels.js';
import { stateOffsets } from './memory-layout.js';
import type { RunnerParts } from './runner-parts.js';
import { deltaRows, FACTORS, type HeadRows, scanRows, writeDeltaFactors } from './state-heads.js';
import { StateLog } from './state-log.js';

type ShortConv = Extract<PlanOp, { op: 'shortConv' }>;
type GatedDelta = Extract<PlanOp, { op: 'gatedDelta' }>;
type SelectiveScan = Extract<PlanOp, { op: 'selectiveScan' }>;

/** Where a convolution reads the inputs of a sequence; history 0: it begins with the first row. */
interface ConvInputs {
  x: number;
  stride: number;
  history: number;
  columns: number;
  /** Inputs before a row that it reads. */
  kept: number;
}

/** Numbers that a kernel looks at side by side. */
const LANES = 4;

/**
 * The ops that keep states of sequences, and the pool of these states:
 *
 *   pool   | slot 0: state 0, state 1, ... | slot 1 ... | log of drafts |     a slot has the states of all layers
 *
 * A sequence whose first token is in the batch begins with states of 0, whatever its slot holds. Each op reads the states that the
 * step before has left, computes the rows of its draft again that were right, and leaves its own states after
 * the last row that is certain, and in the snapshots after theirs.
 */
export class StateRows {
  /** Bytes of the states of all layers. */
  readonly bytesPerSlot: number;
  readonly #parts: RunnerParts;
  readonly #offsets: readonly number[];
  readonly #sizes: readonly number[];
  readonly #log: StateLog;
  #batch!: PackedBatch;

  constructor(parts: RunnerParts) {
    const { plan, options, workspace } = parts;
    const { offsets, slotBytes } = stateOffsets(plan);
    this.#parts = parts;
    this.#offsets = offsets;
    this.bytesPerSlot = slotBytes;
    this.#sizes = (plan.states ?? []).map(({ size }) => size);
    this.#log = new StateLog(plan, options, workspace.states + (options.numStateSlots ?? 0) * slotBytes);
  }

  begin(batch: PackedBatch): void {
    this.#batch = batch;
  }

  shortConv(op: ShortConv): void {
    const { heap, workspace, weights, plan } = this.#parts;
    const { queryStart, numSequences } = this.#batch;
    const stride = plan.values[op.input]!.width;
    const columns = plan.values[op.output]!.width;
    const bias = op.bias === null ? 0 : weights.vectors.get(op.bias)!;
    for (let s = 0; s < numSequences; s++) {
      const first = queryStart[s]!;
      const counts = stateRowCounts(this.#batch, s);
      const x = workspace.values[op.input]! + 4 * (first * stride + op.first);
      const history = this.#historyOf(op, s, counts, columns);
      heap.kernels.shortConv(
        x,
        stride,
        history,
        weights.vectors.get(op.weight)!,
        bias,
        op.taps,
        columns,
        ACTIVATIONS[op.activation],
        counts.rows,
        workspace.values[op.output]! + 4 * first * columns,
      );
      const inputs = { x, stride, history, columns, kept: op.taps - 1 };
      for (const { rows, slot } of this.#snapshotsOf(s))
        this.#keepInputs(inputs, rows, this.#at(op.state, slot));
      const slot = this.#batch.stateSlots[s]!;
      if (counts.keeps && slot >= 0) this.#keepInputs(inputs, counts.certain, this.#at(op.state, slot));
      this.#logRows(op.state, s, counts, { from: x, stride, floats: columns, place: 0 });
    }
  }

  gatedDelta(op: GatedDelta): void {
    const { workspace, plan } = this.#parts;
    const { queryStart, numSequences } = this.#batch;
    const width = plan.values[op.qkv]!.width;
    const ofFactors = FACTORS * op.valueHeads;
    const ofOutput = op.valueHeads * op.valueDim;
    writeDeltaFactors(this.#parts, op, this.#batch.numTokens);
    for (let s = 0; s < numSequences; s++) {
      const first = queryStart[s]!;
      const counts = stateRowCounts(this.#batch, s);
      const rows: HeadRows = {
        inputs: workspace.values[op.qkv]! + 4 * first * width,
        stride: width,
        gates: workspace.delta.factors + 4 * first * ofFactors,
        gateStride: ofFactors,
        y: workspace.values[op.output]! + 4 * first * ofOutput,
        yStride: ofOutput,
      };
      this.#passSequence(op.state, s, counts, rows, (state, part, count) =>
        deltaRows(this.#parts, op, state, part, count),
      );
      this.#logRows(op.state, s, counts, { from: rows.inputs, stride: width, floats: width, place: 0 });
      const factors = { from: rows.gates, stride: ofFactors, floats: ofFactors, place: width };
      this.#logRows(op.state, s, counts, factors);
    }
  }

  selectiveScan(op: SelectiveScan): void {
    const { workspace, plan } = this.#parts;
    const { queryStart, numSequences } = this.#batch;
    const [width, ofSteps] = [plan.values[op.input]!.width, plan.values[op.steps]!.width];
    const ofOutput = op.heads * op.headDim;
    for (let s = 0; s < numSequences; s++) {
      const first = queryStart[s]!;
      const counts = stateRowCounts(this.#batch, s);
      const rows: HeadRows = {
        inputs: workspace.values[op.input]! + 4 * first * width,
        stride: width,
        gates: workspace.values[op.steps]! + 4 * (first * ofSteps + op.stepsFirst),
        gateStride: ofSteps,
        y: workspace.values[op.output]! + 4 * first * ofOutput,
        yStride: ofOutput,
      };
      this.#passSequence(op.state, s, counts, rows, (state, part, count) =>
        scanRows(this.#parts, op, state, part, count),
      );
      this.#logRows(op.state, s, counts, { from: rows.inputs, stride: width, floats: width, place: 0 });
      const steps = { from: rows.gates, stride: ofSteps, floats: op.heads, place: width };
      this.#logRows(op.state, s, counts, steps);
    }
  }

  /** Copies whole slots: see Executor.copyStates. */
  copyStates(source: Int32Array, target: Int32Array): void {
    const { heap, workspace } = this.#parts;
    const bytes = this.bytesPerSlot;
    for (const [i, from] of source.entries())
      heap.copy(workspace.states + target[i]! * bytes, workspace.states + from * bytes, bytes);
  }

  /** Copies the states of slots out of the pool: see StateAccess. */
  readStates(slots: Int32Array, target: Uint8Array): void {
    for (const [i, slot] of slots.entries()) target.set(this.#slot(slot), i * this.bytesPerSlot);
  }

  writeStates(slots: Int32Array, source: Uint8Array): void {
    const bytes = this.bytesPerSlot;
    for (const [i, slot] of slots.entries())
      this.#slot(slot).set(source.subarray(i * bytes, (i + 1) * bytes));
  }

  areFinite(slots: Int32Array): boolean {
    const { heap } = this.#parts;
    return slots.every((slot) =>
      this.#sizes.every((size, state) => {
        const at = this.#at(state, slot);
        const whole = size - (size % LANES);
        const rest = heap.floatsAt(at + 4 * whole, size - whole);
        return heap.kernels.allFinite(at, whole) === 1 && rest.every(Number.isFinite);
      }),
    );
  }

  /** A slot's bytes. */
  #slot(slot: number): Uint8Array {
    const { heap, workspace } = this.#parts;
    const bytes = this.bytesPerSlot;
    return new Uint8Array(heap.floats.buffer, workspace.states + slot * bytes, bytes);
  }

  #at(state: number, slot: number): number {
    return this.#parts.workspace.states + slot * this.bytesPerSlot + this.#offsets[state]!;
  }

  /** Snapshots of a sequence: the rows after which they are made, and their slots. */
  *#snapshotsOf(sequence: number): Generator<{ rows: number; slot: number }> {
    const { queryStart, snapshotStart, snapshotRows, snapshotSlots } = this.#batch;
    for (let i = snapshotStart[sequence]!; i < snapshotStart[sequence + 1]!; i++)
      yield { rows: snapshotRows[i]! + 1 - queryStart[sequence]!, slot: snapshotSlots[i]! };
  }

  /** Inputs before a sequence's first row, those of rows that are computed again included; 0: there are none. */
  #historyOf(op: ShortConv, sequence: number, counts: StateRowCounts, columns: number): number {
    const { heap, workspace } = this.#parts;
    const slot = this.#batch.stateSlots[sequence]!;
    if (counts.begins || slot < 0) return 0;
    const state = this.#at(op.state, slot);
    if (counts.replayed === 0) return state;
    const kept = op.taps - 1;
    const bytes = 4 * columns;
    const { history } = workspace.delta;
    for (let place = 0; place < kept; place++) {
      const row = counts.replayed - kept + place;
      const from = row < 0 ? state + (row + kept) * bytes : this.#log.at(op.state, slot, row);
      heap.copy(history + place * bytes, from, bytes);
    }
    return history;
  }

  /** Logs a draft's rows: `floats` of each, after `place` floats of the op's inputs. */
  #logRows(
    state: number,
    sequence: number,
    { rows, certain, firstLogged }: StateRowCounts,
    { from, stride, floats, place }: { from: number; stride: number; floats: number; place: number },
  ): void {
    const slot = this.#batch.stateSlots[sequence]!;
    for (let row = certain; row < rows; row++) {
      const target = this.#log.at(state, slot, firstLogged + row - certain) + 4 * place;
      this.#parts.heap.copy(target, from + 4 * row * stride, 4 * floats);
    }
  }

  /**
   * The heads of an op over a sequence: rows of its former draft that were right, then those of the step, the draft's on a copy.
   * @param pass computes the first `count` of some rows, and changes the state
   */
  #passSequence(
    index: number,
    sequence: number,
    counts: StateRowCounts,
    rows: HeadRows,
    pass: (state: number, rows: HeadRows, count: number) => void,
  ): void {
    const { heap, workspace } = this.#parts;
    const bytes = 4 * this.#sizes[index]!;
    const slot = this.#batch.stateSlots[sequence]!;
    const { lostState: lost, output } = workspace.delta;
    let state = slot < 0 ? lost : this.#at(index, slot);
    if (slot < 0 || counts.begins) heap.floatsAt(state, bytes / 4).fill(0);
    const leaveKept = () => {
      if (state !== lost) heap.copy(lost, state, bytes);
      state = lost;
    };
    if (counts.replayed > 0) {
      if (!counts.keeps) leaveKept();
      const inputs = this.#log.at(index, slot, 0);
      const stride = this.#log.stride / 4;
      const gates = inputs + 4 * rows.stride;
      pass(state, { inputs, stride, gates, gateStride: stride, y: output, yStride: 0 }, counts.replayed);
    }
    let done = 0;
    const compute = (end: number) => {
      pass(state, rowsFrom(rows, done), end - done);
      done = end;
    };
    const advance = (end: number) => {
      const certain = Math.min(end, counts.certain);
      if (done < certain) compute(certain);
      if (done >= end) return;
      leaveKept();
      compute(end);
    };
    for (const snapshot of this.#snapshotsOf(sequence)) {
      advance(snapshot.rows);
      heap.copy(this.#at(index, snapshot.slot), state, bytes);
    }
    advance(counts.rows);
  }

  /** Keeps the last inputs of the first `rows` rows, oldest first; those of before the sequence's first token are 0. */
  #keepInputs({ x, stride, history, columns, kept }: ConvInputs, rows: number, state: number): void {
    const { heap } = this.#parts;
    const bytes = 4 * columns;
    // Ascending, so that inputs of the state itself move to places before their own.
    for (let place = 0; place < kept; place++) {
      const row = rows - kept + place;
      const target = state + place * bytes;
      if (row >= 0) heap.copy(target, x + 4 * row * stride, bytes);
      else if (history === 0) heap.floatsAt(target, columns).fill(0);
      else heap.copy(target, history + (kept + row) * bytes, bytes);
    }
  }
}

function rowsFrom({ inputs, gates, y, ...rows }: HeadRows, begin: number): HeadRows {
  return {
    ...rows,
    inputs: inputs + 4 * begin * rows.stride,
    gates: gates + 4 * begin * rows.gateStride,
    y: y + 4 * begin * rows.yStride,
  };
}
