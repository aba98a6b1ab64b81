import { type BlockCopies, CopyList } from './memory-changes.js';

/**
 * Slots for the states of sequences: what layers keep of a sequence as a whole (StateShape). It hands out numbers only; the memory is
 * the executor's. A request has a slot for each of its sequences from its first context chunk until it ends or is paused. A slot's
 * content counts from the sequence's first token on: the executor begins with zeros there.
 *
 *   4 slots, a prompt with 3 sequences       slots 0 1 2     the prompt's states are in 0
 *   they part: fork([0, 0, 0])               slots 0 1 2     copies 0 -> 1, 0 -> 2
 *   the best go on from 1, 1 and 0           slots 1 2 0     copies 1 -> 2: 2, from which none goes on, is taken for it
 */
export class StateSlots {
  readonly numSlots: number;
  readonly #free: number[];
  readonly #slots = new Map<bigint, number[]>();
  readonly #copies = new CopyList();

  constructor(numSlots: number) {
    this.numSlots = numSlots;
    this.#free = Array.from({ length: numSlots }, (_, index) => numSlots - 1 - index);
  }

  get freeSlots(): number {
    return this.#free.length;
  }

  /** Takes a slot for each of the request's sequences. Returns false and changes nothing if there are not as many. */
  take(requestId: bigint, width: number): boolean {
    if (this.#slots.has(requestId)) throw new Error(`Request ${requestId} already has slots for its states.`);
    if (width > this.#free.length) return false;
    this.#slots.set(requestId, this.#free.splice(this.#free.length - width, width).reverse());
    return true;
  }

  /** Slot of one of the request's sequences. @throws if it has none */
  slotOf(requestId: bigint, index = 0): number {
    const slot = this.#slots.get(requestId)?.[index];
    if (slot === undefined)
      throw new Error(`Request ${requestId} has no slot for the states of sequence ${index}.`);
    return slot;
  }

  /** Gives the request's first sequence the states of another slot, before its next step. */
  copyFrom(slot: number, requestId: bigint): void {
    this.#copies.add(slot, this.slotOf(requestId));
  }

  /** Sequence i of the request goes on from its former sequence parents[i]; never takes a free slot. See BeamTables.fork. */
  fork(requestId: bigint, parents: readonly number[]): void {
    const old = this.#slots.get(requestId);
    if (old === undefined || parents.length > old.length)
      throw new Error(
        `Request ${requestId} has ${old?.length ?? 0} slots; ${parents.length} sequences go on.`,
      );
    const spare = old.filter((_, index) => !parents.includes(index));
    const continued = new Set<number>();
    const slots = parents.map((parent) => {
      if (!continued.has(parent)) {
        continued.add(parent);
        return old[parent]!;
      }
      const own = spare.shift()!;
      this.#copies.add(old[parent]!, own);
      return own;
    });
    this.#slots.set(requestId, slots);
    this.#free.push(...spare);
  }

  /** Gives back the slots that the request holds. */
  release(requestId: bigint): void {
    const slots = this.#slots.get(requestId);
    if (slots === undefined) return;
    this.#slots.delete(requestId);
    this.#free.push(...slots.reverse());
  }

  /** The copies of whole slots since the last call, in their order, or null. The executor makes them before its next step. */
  drainCopies(): BlockCopies | null {
    return this.#copies.drain();
  }

  /** The first inconsistency as a sentence, or null: each slot is free or held, once. */
  findInconsistency(holders: Iterable<bigint>): string | null {
    const places = [...this.#free, ...[...this.#slots.values()].flat()].sort((a, b) => a - b);
    const wrong = places.findIndex((slot, index) => slot !== index);
    if (wrong !== -1 || places.length !== this.numSlots)
      return `Of ${this.numSlots} slots for states, ${places.length} are free or held, and slot ${wrong === -1 ? places.length : wrong} is not there once.`;
    const requests = new Set(holders);
    for (const requestId of this.#slots.keys())
      if (!requests.has(requestId)) return `Request ${requestId} holds slots for states and no blocks.`;
    return null;
  }
}
