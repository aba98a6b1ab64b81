/** Slots of the old table that are looked at with each entry that comes: it is empty long before the new one is full. */
const SLOTS_PER_ENTRY = 4;

/**
 * Numbers from 0 on by codes of 32 bits, of which several may be equal: a hash table in typed arrays, which
 * costs the garbage collector nothing. An entry stands at the first free slot from its code's home on;
 * removing one closes the gap, so there are no marks of what was there.
 *
 *   mask 7      0    1    2    3    4    5    6    7
 *   codes       .    9    1   10    .    .    .    .        9 and 1 are at home at 1, 10 at 2
 *   remove 9         1   10    .                            each moves back, but not before its home
 *
 * A table that is full stays as it is next to one of twice its slots, and its entries move over a few at a time: no request waits for millions of
 * them. Slots are good until an entry comes or goes.
 */
export class CodeTable {
  #young = new Slots(16);
  /** The table before it, as long as it has entries; its slots are numbered after those of the young one. */
  #old: Slots | null = null;
  /** Slots of the old table that are empty, from the first one on. */
  #numCleared = 0;

  get size(): number {
    return this.#young.size + (this.#old?.size ?? 0);
  }

  /** Slot of an entry with this code, or -1. */
  find(code: number): number {
    const slot = this.#young.find(code);
    return slot >= 0 || this.#old === null ? slot : this.#findOld(this.#old, code);
  }

  /** Slot of the next entry with the code of the one at `slot`, or -1. */
  findNext(slot: number): number {
    const young = this.#young;
    const old = this.#old;
    if (slot < young.length) {
      const next = young.findNext(slot);
      return next >= 0 || old === null ? next : this.#findOld(old, young.codeAt(slot));
    }
    const next = old!.findNext(slot - young.length);
    return next < 0 ? next : next + young.length;
  }

  valueAt(slot: number): number {
    const { length } = this.#young;
    return slot < length ? this.#young.valueAt(slot) : this.#old!.valueAt(slot - length);
  }

  setValue(slot: number, value: number): void {
    const { length } = this.#young;
    if (slot < length) this.#young.setValue(slot, value);
    else this.#old!.setValue(slot - length, value);
  }

  add(code: number, value: number): void {
    if (4 * (this.size + 1) > 3 * this.#young.length) this.#grow();
    this.#young.put(code, value);
    if (this.#old !== null) this.#moveSome(this.#old);
  }

  remove(slot: number): void {
    const { length } = this.#young;
    if (slot < length) this.#young.remove(slot);
    else this.#old!.remove(slot - length);
  }

  #findOld(old: Slots, code: number): number {
    const slot = old.find(code);
    return slot < 0 ? slot : slot + this.#young.length;
  }

  #grow(): void {
    while (this.#old !== null) this.#moveSome(this.#old);
    this.#old = this.#young;
    this.#numCleared = 0;
    this.#young = new Slots(2 * this.#young.length);
  }

  #moveSome(old: Slots): void {
    for (let i = 0; i < SLOTS_PER_ENTRY && old.size > 0; i++) {
      const slot = this.#numCleared;
      if (old.isFree(slot)) this.#numCleared += 1;
      else {
        this.#young.put(old.codeAt(slot), old.valueAt(slot));
        // Those after it may move back to this slot, and never to one that is empty already.
        old.remove(slot);
      }
    }
    if (old.size === 0) this.#old = null;
  }
}

/** A table of a number of slots that does not change, a power of two; one at least is free. */
class Slots {
  readonly length: number;
  size = 0;
  readonly #codes: Int32Array;
  /** One more than the value; 0: the slot is free, as all are at first, so that no memory is written to before it is used. */
  readonly #values: Int32Array;
  readonly #mask: number;

  constructor(length: number) {
    this.length = length;
    this.#codes = new Int32Array(length);
    this.#values = new Int32Array(length);
    this.#mask = length - 1;
  }

  find(code: number): number {
    return this.#findFrom(code & this.#mask, code);
  }

  findNext(slot: number): number {
    return this.#findFrom((slot + 1) & this.#mask, this.#codes[slot]!);
  }

  isFree(slot: number): boolean {
    return this.#values[slot] === 0;
  }

  codeAt(slot: number): number {
    return this.#codes[slot]!;
  }

  valueAt(slot: number): number {
    return this.#values[slot]! - 1;
  }

  setValue(slot: number, value: number): void {
    this.#values[slot] = value + 1;
  }

  put(code: number, value: number): void {
    let slot = code & this.#mask;
    while (this.#values[slot] !== 0) slot = (slot + 1) & this.#mask;
    this.#codes[slot] = code;
    this.#values[slot] = value + 1;
    this.size += 1;
  }

  remove(slot: number): void {
    let hole = slot;
    for (let at = (slot + 1) & this.#mask; this.#values[at] !== 0; at = (at + 1) & this.#mask) {
      const fromHome = (at - this.#codes[at]!) & this.#mask;
      if (fromHome < ((at - hole) & this.#mask)) continue;
      this.#codes[hole] = this.#codes[at]!;
      this.#values[hole] = this.#values[at]!;
      hole = at;
    }
    this.#values[hole] = 0;
    this.size -= 1;
  }

  #findFrom(first: number, code: number): number {
    for (let slot = first; this.#values[slot] !== 0; slot = (slot + 1) & this.#mask) {
      if (this.#codes[slot] === code) return slot;
    }
    return -1;
  }
}
