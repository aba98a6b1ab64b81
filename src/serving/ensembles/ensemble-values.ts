import type { Lease } from './lease.js';
import type { SequencePlace } from './sequence-parameters.js';
import type { PlacedTensor } from './step-tensors.js';

/** A tensor on its way to the steps that take it. */
export interface Value extends PlacedTensor {
  /** Null: the client gave it, and the request says it. */
  readonly sequence: SequencePlace | null;
  readonly lease: Lease | null;
}

interface Kept {
  readonly value: Value;
  /** Steps that will take it, and the client if it is an output. */
  uses: number;
}

/** The tensors of one request that have come and are still to be taken, by tensor and number. */
export class EnsembleValues {
  readonly #kept: (Kept | undefined)[][];

  constructor(numTensors: number) {
    this.#kept = Array.from({ length: numTensors }, () => []);
  }

  /** @param value undefined: it was left out @param uses those that will take it */
  put(tensor: number, number: number, value: Value | undefined, uses: number): void {
    if (uses === 0 || value === undefined) return;
    value.lease?.use(uses);
    this.#kept[tensor]![number] = { value, uses };
  }

  /** A tensor for one of those that take it; null: it was left out. */
  use(tensor: number, number: number): Value | null {
    const kept = this.#kept[tensor]![number];
    if (kept === undefined) return null;
    if (--kept.uses === 0) this.#kept[tensor]![number] = undefined;
    return kept.value;
  }

  clear(): void {
    for (const values of this.#kept) values.length = 0;
  }
}
