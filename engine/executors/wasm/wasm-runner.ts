import type { NetworkPlan } from '../../../network/plan.js';
import { isSetUp } from '../../../network/set-up-ops.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { BlockAccess, StateAccess } from '../executor.js';
import type { NetworkRunner } from '../portable/network-runner.js';
import { AttendedRows } from './attended-rows.js';
import { executorMemory } from './memory-layout.js';
import { OpRunner } from './op-runner.js';
import type { RunnerParts } from './runner-parts.js';
import { StateRows } from './state-rows.js';

/**
 * Runs the ops of a plan over a heap: products by XNNPACK, the rest by the kernels of engine/executors/wasm/kernels.
 */
export class WasmRunner implements NetworkRunner {
  readonly name = 'wasm';
  readonly attendsWithinPictures = true;
  readonly device = 'SIMD';
  readonly blockAccess?: BlockAccess;
  readonly #plan: NetworkPlan;
  /** Index of the first op that each step runs, and of the first over rows of logits. */
  readonly #stepBegin: number;
  readonly #headBegin: number;
  readonly #memory: ReturnType<NetworkRunner['memory']>;
  #open: { parts: RunnerParts; attended: AttendedRows; states: StateRows; ops: OpRunner } | null;
  #numRows = 0;

  constructor(parts: RunnerParts) {
    const { plan, layout } = parts;
    const attended = new AttendedRows(parts);
    this.#plan = plan;
    this.#headBegin = plan.ops.findIndex(({ op }) => op === 'selectRows' || op === 'meanPool');
    this.#memory = executorMemory(layout);
    const states = new StateRows(parts);
    const ops = new OpRunner(parts, attended, states);
    this.#open = { parts, attended, states, ops };
    this.#stepBegin = plan.ops.findIndex((op) => !isSetUp(plan, op));
    const buckets = plan.attention.distances?.count ?? 0;
    for (let index = 0; index < this.#stepBegin; index++) ops.run(index, buckets);
    if (plan.caches.length === 0 && states.bytesPerSlot === 0) return;
    this.blockAccess = {
      bytesPerBlock: attended.bytesPerBlock,
      readBlocks: (blocks, target) => this.#opened().attended.readBlocks(blocks, target),
      writeBlocks: (blocks, source) => this.#opened().attended.writeBlocks(blocks, source),
      ...(states.bytesPerSlot > 0 && { states: this.#accessTo(states.bytesPerSlot) }),
    };
  }

  forward(batch: PackedBatch): void {
    const { attended, states, ops } = this.#opened();
    attended.begin(batch);
    states.begin(batch);
    ops.begin(batch);
    for (let index = this.#stepBegin; index < this.#headBegin; index++) ops.run(index, batch.numTokens);
  }

  head(rows: Int32Array): void {
    const { ops } = this.#opened();
    this.#numRows = rows.length;
    ops.select(rows);
    for (let index = this.#headBegin; index < this.#plan.ops.length; index++) ops.run(index, rows.length);
  }

  logits(): Float32Array {
    const { heap, workspace } = this.#opened().parts;
    const { logits, outputWidth } = this.#plan;
    return heap.floatsAt(workspace.values[logits]!, this.#numRows * outputWidth);
  }

  copyBlocks(source: Int32Array, target: Int32Array): void {
    this.#opened().attended.copyBlocks(source, target);
  }

  areFinite(blocks: Int32Array): boolean {
    return this.#opened().attended.areFinite(blocks);
  }

  copyStates(source: Int32Array, target: Int32Array): void {
    this.#opened().states.copyStates(source, target);
  }

  areStatesFinite(slots: Int32Array): boolean {
    return this.#opened().states.areFinite(slots);
  }

  memory(): ReturnType<NetworkRunner['memory']> {
    return this.#memory;
  }

  /** Seconds per kind of op since the last call; counting goes on if `on` is true. */
  profile(on: boolean): Record<string, number> {
    return this.#opened().ops.profile(on);
  }

  /** Drops the references to the heap, which is freed with the last one. */
  close(): void {
    this.#open = null;
  }

  #accessTo(bytesPerSlot: number): StateAccess {
    return {
      bytesPerSlot,
      readStates: (slots, target) => this.#opened().states.readStates(slots, target),
      writeStates: (slots, source) => this.#opened().states.writeStates(slots, source),
    };
  }

  #opened() {
    if (this.#open === null) throw new Error('This wasm executor has been closed.');
    return this.#open;
  }
}
