import type { PlanOp } from '../../../network/plan.js';
import { promptRowWidth } from '../../../network/prompt-rows.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import {
  addPlacedRows,
  addPromptRows,
  rowsLookedUp,
  writeEmbeddingRows,
  writePromptRows,
} from '../portable/embedding-rows.js';
import type { AttendedRows } from './attended-rows.js';
import { ExpertRows } from './expert-rows.js';
import { ACTIVATIONS } from './kernels.js';
import { ROWS_AT_ONCE } from './memory-layout.js';
import type { RunnerParts } from './runner-parts.js';
import type { StateRows } from './state-rows.js';

type Op<T extends PlanOp['op']> = Extract<PlanOp, { op: T }>;

/** Runs each op of a plan over rows in the heap. */
export class OpRunner {
  readonly #parts: RunnerParts;
  readonly #attended: AttendedRows;
  readonly #states: StateRows;
  readonly #experts: ExpertRows;
  /** Number of columns of each vector. */
  readonly #vectorWidths: ReadonlyMap<string, number>;
  #seconds: Record<string, number> | null = null;
  #batch!: PackedBatch;
  /** Rows of T that go on to the head. */
  #selected!: Int32Array;

  constructor(parts: RunnerParts, attended: AttendedRows, states: StateRows) {
    this.#parts = parts;
    this.#attended = attended;
    this.#states = states;
    this.#experts = new ExpertRows(parts);
    this.#vectorWidths = new Map(parts.plan.weights.map(({ name, columns }) => [name, columns]));
  }

  begin(batch: PackedBatch): void {
    this.#batch = batch;
  }

  select(rows: Int32Array): void {
    this.#selected = rows;
  }

  /** Seconds per kind of op since the last call; counting goes on if `on` is true. */
  profile(on: boolean): Record<string, number> {
    const seconds = this.#seconds ?? {};
    this.#seconds = on ? {} : null;
    return seconds;
  }

  /** @param rows number of rows in the op's values */
  run(index: number, rows: number): void {
    if (this.#seconds === null) {
      this.#run(index, rows);
      return;
    }
    const { op } = this.#parts.plan.ops[index]!;
    const begin = performance.now();
    this.#run(index, rows);
    this.#seconds[op] = (this.#seconds[op] ?? 0) + (performance.now() - begin) / 1000;
  }

  #run(index: number, rows: number): void {
    const op = this.#parts.plan.ops[index]!;
    switch (op.op) {
      case 'embedding':
      case 'addEmbedding':
      case 'addPromptRows':
        this.#lookUp(op);
        break;
      case 'distanceRows':
        this.#distanceRows(op, rows);
        break;
      case 'distanceProducts':
        this.#parts.relative.keepProducts(op, this.#at(op.value), this.#width(op.value));
        break;
      case 'distanceBiases':
        this.#parts.relative.keepBiases(op, this.#vector(op.weight));
        break;
      case 'rmsNorm':
      case 'rmsNormHeads':
      case 'layerNormHeads':
      case 'layerNorm':
      case 'normalize':
        this.#norm(op, rows);
        break;
      case 'linear':
        this.#linear(op, rows);
        break;
      case 'gatedLinear':
        this.#gatedLinear(op, rows);
        break;
      case 'experts':
        this.#experts.run(op, rows);
        break;
      case 'ropeAndCache':
        this.#attended.ropeAndCache(op);
        break;
      case 'attention':
        this.#attended.attend(op);
        break;
      case 'softCap':
        this.#parts.heap.kernels.capRows(this.#at(op.value), op.cap, rows * this.#width(op.value));
        break;
      case 'xielu':
        this.#xielu(op, rows);
        break;
      case 'gate':
        this.#gate(op, rows);
        break;
      case 'shortConv':
        this.#states.shortConv(op);
        break;
      case 'gatedDelta':
        this.#states.gatedDelta(op);
        break;
      case 'selectiveScan':
        this.#states.selectiveScan(op);
        break;
      case 'addScaled':
      case 'scale':
      case 'clamp':
        this.#changeColumns(op, rows);
        break;
      case 'rowInput':
      case 'selectRows':
      case 'meanPool':
        this.#takeRows(op);
        break;
      case 'join':
        this.#join(op, rows);
        break;
    }
  }

  /** Pointer to a value. */
  #at(value: number): number {
    return this.#parts.workspace.values[value]!;
  }

  #width(value: number): number {
    return this.#parts.plan.values[value]!.width;
  }

  #vector(name: string): number {
    return this.#parts.weights.vectors.get(name)!;
  }

  #lookUp(op: Op<'embedding'> | Op<'addEmbedding'> | Op<'addPromptRows'>): void {
    if (op.op === 'embedding') this.#embedding(op);
    else if (op.op === 'addEmbedding') this.#addEmbedding(op);
    else this.#addPromptRows(op);
  }

  #embedding({ output, weight, scale }: Op<'embedding'>): void {
    const { plan, heap, weights } = this.#parts;
    const shape = { vocabSize: plan.vocabSize, width: this.#width(output) };
    const rows = heap.floatsAt(this.#at(output), this.#batch.numTokens * shape.width);
    writeEmbeddingRows(this.#batch, weights.tables.get(weight)!, { ...shape, scale }, rows);
    writePromptRows(this.#batch, { ...shape, stride: promptRowWidth(plan) }, rows);
  }

  #addPromptRows({ value, first }: Op<'addPromptRows'>): void {
    const { plan, heap } = this.#parts;
    const width = this.#width(value);
    const part = { vocabSize: plan.vocabSize, stride: promptRowWidth(plan), first, width };
    addPromptRows(this.#batch, part, heap.floatsAt(this.#at(value), this.#batch.numTokens * width));
  }

  #addEmbedding({ output, weight, by, scale = 1 }: Op<'addEmbedding'>): void {
    const { heap, weights, plan } = this.#parts;
    const width = this.#width(output);
    const table = weights.tables.get(weight)!;
    const { numTokens } = this.#batch;
    if (by === 'places') {
      const shape = { width, scale };
      addPlacedRows(this.#batch, table, shape, heap.floatsAt(this.#at(output), numTokens * width));
      return;
    }
    const rowOf = rowsLookedUp(this.#batch, by, plan.vocabSize);
    const rows = heap.floatsAt(this.#at(output), numTokens * width);
    const factor = Math.fround(scale);
    for (let t = 0; t < numTokens; t++) {
      const begin = rowOf(t) * width;
      for (let i = 0; i < width; i++) rows[t * width + i]! += Math.fround(table[begin + i]! * factor);
    }
  }

  #changeColumns(op: Op<'addScaled'> | Op<'scale'> | Op<'clamp'>, rows: number): void {
    if (op.op === 'addScaled') {
      this.#addScaled(op, rows);
      return;
    }
    const { value, first, columns } = op;
    const at = this.#at(value) + 4 * first;
    const { kernels } = this.#parts.heap;
    if (op.op === 'scale') kernels.scaleColumns(at, this.#width(value), columns, op.factor, rows);
    else kernels.clampColumns(at, this.#width(value), columns, op.least, op.most, rows);
  }

  #distanceRows({ output, weight }: Op<'distanceRows'>, rows: number): void {
    const { heap, weights } = this.#parts;
    heap.floatsAt(this.#at(output), rows * this.#width(output)).set(weights.tables.get(weight)!);
  }

  #xielu(op: Op<'xielu'>, rows: number): void {
    const { alphaPositive, alphaNegative, beta, epsilon } = op;
    const { kernels } = this.#parts.heap;
    const count = rows * this.#width(op.value);
    kernels.xieluRows(this.#at(op.value), alphaPositive, alphaNegative, beta, epsilon, count);
  }

  #addScaled({ input, output, weight }: Op<'addScaled'>, rows: number): void {
    const { heap } = this.#parts;
    const width = this.#width(input);
    const factors = heap.floatsAt(this.#vector(weight), width);
    const from = heap.floatsAt(this.#at(input), rows * width);
    const sum = heap.floatsAt(this.#at(output), rows * width);
    for (let row = 0; row < rows; row++)
      for (let i = 0, at = row * width; i < width; i++, at++)
        sum[at]! += Math.fround(from[at]! * factors[i]!);
  }

  #gate(op: Op<'gate'>, rows: number): void {
    const { value, first, columns, by, byFirst, per = 1, activation } = op;
    this.#parts.heap.kernels.gateColumns(
      this.#at(value) + 4 * first,
      this.#width(value),
      this.#at(by) + 4 * byFirst,
      this.#width(by),
      columns,
      per,
      ACTIVATIONS[activation],
      rows,
    );
  }

  #norm(
    op: Op<'rmsNorm' | 'rmsNormHeads' | 'layerNormHeads' | 'layerNorm' | 'normalize'>,
    rows: number,
  ): void {
    const { kernels } = this.#parts.heap;
    if (op.op === 'rmsNormHeads' || op.op === 'layerNormHeads') {
      const { value, first, heads, weight, epsilon } = op;
      const [begin, stride] = [this.#at(value) + 4 * first, this.#width(value)];
      if (weight === null) {
        kernels.normHeads(begin, stride, heads, op.columns, 0, epsilon, rows);
        return;
      }
      const scales = this.#vectorWidths.get(weight)!;
      if (op.op === 'rmsNormHeads')
        kernels.normHeads(begin, stride, heads, scales, this.#vector(weight), epsilon, rows);
      else kernels.layerNormHeads(begin, stride, heads, scales / heads, this.#vector(weight), epsilon, rows);
      return;
    }
    const input = this.#at(op.input);
    const output = this.#at(op.output);
    const width = this.#width(op.input);
    if (op.op === 'normalize') {
      kernels.unitRows(input, width, rows, output);
    } else if (op.op === 'layerNorm') {
      const bias = op.bias === null ? 0 : this.#vector(op.bias);
      kernels.layerNorm(input, this.#vector(op.weight), bias, op.epsilon, width, rows, output);
    } else {
      const residual = op.residual === undefined ? 0 : this.#at(op.residual);
      kernels.rmsNorm(input, this.#vector(op.weight), op.epsilon, residual, width, rows, output);
    }
  }

  #linear(op: Op<'linear'>, rows: number): void {
    const { heap, workspace, weights } = this.#parts;
    const matrix = weights.products.of(op.weight, op.bias);
    const { inputs, outputs } = matrix;
    const input = this.#at(op.input);
    const output = this.#at(op.output);
    if (op.activation === 'none' && op.residual === null) {
      heap.multiply(input, matrix, rows, output);
      return;
    }
    const activation = ACTIVATIONS[op.activation];
    // The product goes to separate memory first, since the output may be the residual that it is added to.
    for (let row = 0; row < rows; row += ROWS_AT_ONCE) {
      const count = Math.min(ROWS_AT_ONCE, rows - row);
      const begin = 4 * row * outputs;
      const residual = op.residual === null ? 0 : this.#at(op.residual) + begin;
      heap.multiply(input + 4 * row * inputs, matrix, count, workspace.product);
      heap.kernels.finishRows(workspace.product, residual, activation, count * outputs, output + begin);
    }
  }

  #gatedLinear(op: Op<'gatedLinear'>, rows: number): void {
    const { heap, workspace, weights } = this.#parts;
    const matrix = weights.products.of(op.weight, op.bias);
    const input = this.#at(op.input);
    const output = this.#at(op.output);
    const width = this.#width(op.output);
    const activation = ACTIVATIONS[op.activation];
    for (let row = 0; row < rows; row += ROWS_AT_ONCE) {
      const count = Math.min(ROWS_AT_ONCE, rows - row);
      heap.multiply(input + 4 * row * matrix.inputs, matrix, count, workspace.product);
      heap.kernels.gateRows(workspace.product, count, width, activation, output + 4 * row * width);
    }
  }

  #takeRows(op: Op<'rowInput' | 'selectRows' | 'meanPool'>): void {
    if (op.op === 'rowInput') this.#rowInput(op);
    else if (op.op === 'selectRows') this.#selectRows(op);
    else this.#meanPool(op);
  }

  #rowInput({ output }: Op<'rowInput'>): void {
    const numbers = this.#batch.numTokens * this.#width(output);
    this.#parts.heap.floatsAt(this.#at(output), numbers).set(this.#batch.rowInputs!.subarray(0, numbers));
  }

  #selectRows({ input, output, rows = 1, mean }: Op<'selectRows'>): void {
    const { heap } = this.#parts;
    const width = this.#width(input);
    const bytes = 4 * width;
    for (const [i, row] of this.#selected.entries()) {
      const from = this.#at(input) + row * bytes;
      if (mean) heap.kernels.meanRows(from, rows, width, this.#at(output) + i * bytes);
      else heap.copy(this.#at(output) + i * rows * bytes, from, rows * bytes);
    }
  }

  #join({ input, other, output }: Op<'join'>, rows: number): void {
    const [n, m] = [4 * this.#width(input), 4 * this.#width(other)];
    const { heap } = this.#parts;
    for (let row = 0; row < rows; row++) {
      const joined = this.#at(output) + row * (n + m);
      heap.copy(joined, this.#at(input) + row * n, n);
      heap.copy(joined + n, this.#at(other) + row * m, m);
    }
  }

  /** Writes the mean of each selected row's sequence. */
  #meanPool({ input, output, weighted = false }: Op<'meanPool'>): void {
    const { queryStart } = this.#batch;
    const width = this.#width(input);
    let sequence = 0;
    for (const [i, row] of this.#selected.entries()) {
      if (queryStart[sequence]! > row) sequence = 0;
      while (queryStart[sequence + 1]! <= row) sequence++;
      const begin = queryStart[sequence]!;
      const rows = queryStart[sequence + 1]! - begin;
      const { kernels } = this.#parts.heap;
      const [from, to] = [this.#at(input) + 4 * begin * width, this.#at(output) + 4 * i * width];
      if (weighted) this.#weightedMean(from, rows, width, to);
      else kernels.meanRows(from, rows, width, to);
    }
  }

  /** The mean of rows of which the one at i counts i + 1 times, summed in double precision. */
  #weightedMean(from: number, rows: number, width: number, to: number): void {
    const { heap } = this.#parts;
    const x = heap.floatsAt(from, rows * width);
    const y = heap.floatsAt(to, width);
    const total = (rows * (rows + 1)) / 2;
    for (let column = 0; column < width; column++) {
      let sum = 0;
      for (let row = 0; row < rows; row++) sum += (row + 1) * x[row * width + column]!;
      y[column] = sum / total;
    }
  }
}
