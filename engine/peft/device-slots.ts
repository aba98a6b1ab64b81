import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import { AdapterCache } from './adapter-cache.js';

/** A change of a slot of the executor; null: the slot becomes empty. */
export interface SlotChange {
  slot: number;
  weights: AdapterWeights | null;
}

/**
 * Which adapter is in which slot of the executor. A step holds the slots of its requests until it has ended, so none of them is
 * replaced; the others are, the one unused for longest first.
 *
 *   slots          0: task 7   1: task 3   2: empty
 *   step A         7, 3        holds 0 and 1
 *   step B         3, 9        holds 1 and 2, where 9 is put
 *   A ends         slot 0 is unused; B still holds 1
 *   step C         4           slot 0: 7 makes room for 4
 *
 * Slots change only in front of a step, when no other runs: what is to be done is collected until `drain`.
 */
export class DeviceSlots {
  readonly maxSlots: number;
  readonly #cache: AdapterCache<number>;
  /** Weights that each slot is to have. */
  readonly #weights: (AdapterWeights | null)[];
  readonly #free: number[];
  /** Slots that differ from what the executor has. */
  readonly #changed = new Set<number>();
  /** Slots that the executor could not change; what they hold is not known. */
  readonly #failed = new Set<number>();

  constructor(maxSlots: number, numPages: number) {
    this.maxSlots = maxSlots;
    this.#cache = new AdapterCache(numPages, maxSlots);
    this.#weights = new Array(maxSlots).fill(null);
    this.#free = Array.from({ length: maxSlots }, (_, i) => maxSlots - 1 - i);
  }

  get numPages(): number {
    return this.#cache.numPages;
  }

  get usedPages(): number {
    return this.#cache.usedPages;
  }

  /** Slot of a task that is there; -1: it is not. */
  slotOf(taskId: bigint): number {
    return this.#cache.get(taskId) ?? -1;
  }

  /**
   * Holds a slot for each of these tasks, all different, and finds one for those that have none. Returns the tasks for which
   * there was no room; they hold nothing.
   */
  hold(
    taskIds: readonly bigint[],
    adapterOf: (taskId: bigint) => { weights: AdapterWeights; pages: number },
  ): bigint[] {
    // Those that are there first, so that they make no room for the others.
    const missing = taskIds.filter((taskId) => !this.#cache.has(taskId));
    for (const taskId of taskIds) if (this.#cache.has(taskId)) this.#holdAgain(taskId);
    return missing.filter((taskId) => !this.#put(taskId, adapterOf(taskId)));
  }

  #holdAgain(taskId: bigint): void {
    this.#cache.hold(taskId);
    const slot = this.slotOf(taskId);
    if (this.#failed.delete(slot)) this.#changed.add(slot);
  }

  #put(taskId: bigint, { weights, pages }: { weights: AdapterWeights; pages: number }): boolean {
    // The slot is known only after others have left theirs, so -1 stands for it first.
    const evicted = this.#cache.put(taskId, pages, -1);
    if (evicted === null) return false;
    for (const { value: slot } of evicted) this.#empty(slot);
    const slot = this.#free.pop()!;
    this.#cache.set(taskId, slot);
    this.#weights[slot] = weights;
    this.#change(slot);
    return true;
  }

  /** Ends what `hold` began for these tasks. */
  release(taskIds: readonly bigint[]): void {
    for (const taskId of taskIds) this.#cache.release(taskId);
  }

  /** Forgets a task that no step holds; nothing happens if it is not there. */
  remove(taskId: bigint): void {
    if (this.#cache.has(taskId)) this.#empty(this.#cache.remove(taskId));
  }

  /** True while a step holds the task's slot. */
  isHeld(taskId: bigint): boolean {
    return this.#cache.uses(taskId) > 0;
  }

  /** The changes since the last call, slots that become empty first: their memory may be needed. */
  drain(): SlotChange[] {
    const changes = [...this.#changed].map((slot) => ({ slot, weights: this.#weights[slot]! }));
    this.#changed.clear();
    return changes.sort((one, other) => Number(one.weights !== null) - Number(other.weights !== null));
  }

  /** Notes that a change failed: it is tried again when a step next holds the slot. */
  noteFailed(slot: number): void {
    this.#failed.add(slot);
  }

  /** Ids of the tasks that are there. */
  taskIds(): bigint[] {
    return this.#cache.ids();
  }

  #empty(slot: number): void {
    this.#weights[slot] = null;
    this.#free.push(slot);
    this.#change(slot);
  }

  #change(slot: number): void {
    this.#failed.delete(slot);
    this.#changed.add(slot);
  }
}
