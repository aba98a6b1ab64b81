import { TokenizerError } from './tokenizer-json.js';

/** Stands for no item, and for an empty slot. */
export const NONE = -1;

/** Items of a hash table with open addressing: an item is in the slot of its hash, or in one of the next. */
export interface SlotTable {
  /** Number of an item, or NONE. A power of two, at least twice as many as items. */
  slots: Int32Array;
  /** What all hashes begin with. */
  seed: number;
}

/** Most slots that are looked at for one item: a vocabulary made to collide must not make each look-up a search. */
const MAX_PROBES = 256;
const MAX_SEEDS = 8;

/**
 * Puts the items 0 to count - 1 into slots; of equal ones the last.
 * @param hashOf hash of an item, by a seed
 * @throws TokenizerError where hashes collide too often with every seed
 */
export function slotTable(
  count: number,
  hashOf: (item: number, seed: number) => number,
  isSame: (one: number, other: number) => boolean,
): SlotTable {
  for (let seed = 0; seed < MAX_SEEDS; seed++) {
    const slots = filled(
      new Int32Array(numSlots(count)).fill(NONE),
      count,
      (item) => hashOf(item, seed),
      isSame,
    );
    if (slots !== null) return { slots, seed };
  }
  throw new TokenizerError('tokenizer.json: too many texts or merges of the model have the same hash.');
}

/** Number of slots for as many items. */
export function numSlots(count: number): number {
  return 2 ** (33 - Math.clz32(count));
}

/** @returns null where an item is too far from its slot */
function filled(
  slots: Int32Array,
  count: number,
  hashOf: (item: number) => number,
  isSame: (one: number, other: number) => boolean,
): Int32Array | null {
  const mask = slots.length - 1;
  for (let item = count - 1; item >= 0; item--) {
    let at = hashOf(item) & mask;
    let probes = 0;
    while (slots[at] !== NONE && !isSame(slots[at]!, item)) {
      if (++probes === MAX_PROBES) return null;
      at = (at + 1) & mask;
    }
    if (slots[at] === NONE) slots[at] = item;
  }
  return slots;
}

/** Hash to which another number is added. */
export function mixed(hash: number, value: number): number {
  const product = Math.imul(hash ^ value, 0x9e3779b1);
  return product ^ (product >>> 15);
}
