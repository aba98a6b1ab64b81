import type { PrefixNode } from './prefix-tree.js';

/**
 * Slots with the states of sequences as they were after a full block: snapshots, from which a later sequence that begins alike goes
 * on. A slot is free, reserved by a sequence that writes it in its next step, or kept by the node of the block. If none is free, the
 * kept one whose node has the lowest priority goes, among equals the one used longest ago; its block stays.
 *
 *   free --reserve--> reserved --keep(node)--> kept --another needs it, or the node goes--> free
 *                         +------free(slot)----------------------------------------------->
 */
export class StateSnapshots {
  readonly #first: number;
  readonly #count: number;
  readonly #free: number[];
  /** Nodes with a snapshot, the one used longest ago first. */
  readonly #kept = new Set<PrefixNode>();
  readonly #onChange: (node: PrefixNode) => void;
  #version = 0;

  /**
   * @param first number of the first slot
   * @param onChange called when a node of the tree has got a snapshot, or has lost it
   */
  constructor(first: number, count: number, onChange: (node: PrefixNode) => void = () => {}) {
    this.#onChange = onChange;
    this.#first = first;
    this.#count = count;
    this.#free = Array.from({ length: count }, (_, index) => first + count - 1 - index);
  }

  get version(): number {
    return this.#version;
  }

  get numKept(): number {
    return this.#kept.size;
  }

  /** Takes a slot, if need be from a node; -1: all are reserved. */
  reserve(): number {
    const slot = this.#free.pop();
    if (slot !== undefined) return slot;
    let last: PrefixNode | null = null;
    for (const node of this.#kept) if (last === null || node.priority < last.priority) last = node;
    if (last === null) return -1;
    const { state } = last;
    this.#kept.delete(last);
    this.#version += 1;
    last.state = -1;
    this.#onChange(last);
    return state;
  }

  /** Gives back a reserved slot. */
  free(slot: number): void {
    this.#free.push(slot);
  }

  /** Makes a reserved slot the snapshot of the node; one that has another keeps that. */
  keep(node: PrefixNode, slot: number): void {
    if (node.state >= 0) {
      this.free(slot);
      return;
    }
    node.state = slot;
    this.#kept.add(node);
    this.#version += 1;
    this.#onChange(node);
  }

  /** Marks the node's snapshot as used now. */
  touch(node: PrefixNode): void {
    this.#kept.delete(node);
    this.#kept.add(node);
  }

  /** The node leaves the tree, and its snapshot with it. */
  remove(node: PrefixNode): void {
    if (!this.#kept.delete(node)) return;
    this.free(node.state);
    this.#version += 1;
    node.state = -1;
  }

  /** The first inconsistency as a sentence, or null: each slot is free, reserved or kept, once. */
  findInconsistency(reserved: readonly number[]): string | null {
    const kept = Array.from(this.#kept, ({ state }) => state);
    const places = [...this.#free, ...reserved, ...kept].sort((a, b) => a - b);
    const wrong = places.findIndex((slot, index) => slot !== this.#first + index);
    if (wrong === -1 && places.length === this.#count) return null;
    return `Of ${this.#count} slots for snapshots of states, ${places.length} are free, reserved or kept, each of them once or not.`;
  }
}
