import type { NetworkPlan } from '../../../network/plan.js';
import { stateInputBytes } from '../../../network/state-inputs.js';
import type { ExecutorOptions } from '../executor.js';

/**
 * Where the inputs of ops with states are logged for the rows of drafts:
 *
 *   log   | slot 0: row 0: inputs of state 0, of state 1, ... | row 1 | ... | slot 1 ...
 */
export class StateLog {
  /** Bytes from one row to the next. */
  readonly stride: number;
  readonly #begin: number;
  readonly #rows: number;
  readonly #offsets = new Map<number, number>();

  /** @param begin pointer to it */
  constructor(plan: NetworkPlan, { stateDraftRows = 0 }: ExecutorOptions, begin: number) {
    this.#begin = begin;
    this.#rows = stateDraftRows;
    this.stride = stateInputBytes(plan);
    let offset = 0;
    for (const op of plan.ops) {
      if (!('state' in op)) continue;
      this.#offsets.set(op.state, offset);
      offset += stateInputBytes({ values: plan.values, ops: [op] });
    }
  }

  /** Pointer to the inputs of a state's op in a row of a slot. */
  at(state: number, slot: number, row: number): number {
    return this.#begin + (slot * this.#rows + row) * this.stride + this.#offsets.get(state)!;
  }
}
