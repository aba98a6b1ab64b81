const EMPTY = -1;

/**
 * Numbers from 0 on by codes of 32 bits, of which several may be equal: a hash table in typed arrays, which costs the garbage collector
 * nothing. An entry stands at the first free slot from its code's home on; whoever takes one out closes the gap, so there are no marks of
 * what was there.
 *
 *   mask 7      0    1    2    3    4    5    6    7
 *   codes       .    9    1   10    .    .    .    .        9 and 1 are at home at 1, 10 at 2
 *   remove 9         1   10    .                            each moves back, but not before its home
 */
export class CodeTable {
  #codes = new Int32Array(16);
  #values = new Int32Array(16).fill(EMPTY);
  #mask = 15;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Slot of an entry with this code, or -1. */
  find(code: number): number {
    return this.#findFrom(code & this.#mask, code);
  }

  /** Slot of the next entry with the code of the one at `slot`, or -1. */
  findNext(slot: number): number {
    return this.#findFrom((slot + 1) & this.#mask, this.#codes[slot]!);
  }

  valueAt(slot: number): number {
    return this.#values[slot]!;
  }

  setValue(slot: number, value: number): void {
    this.#values[slot] = value;
  }

  add(code: number, value: number): void {
    if (4 * (this.#size + 1) > 3 * (this.#mask + 1)) this.#grow();
    this.#put(code, value);
    this.#size += 1;
  }

  remove(slot: number): void {
    let hole = slot;
    for (let at = (slot + 1) & this.#mask; this.#values[at] !== EMPTY; at = (at + 1) & this.#mask) {
      const fromHome = (at - this.#codes[at]!) & this.#mask;
      if (fromHome < ((at - hole) & this.#mask)) continue;
      this.#codes[hole] = this.#codes[at]!;
      this.#values[hole] = this.#values[at]!;
      hole = at;
    }
    this.#values[hole] = EMPTY;
    this.#size -= 1;
  }

  #findFrom(first: number, code: number): number {
    for (let slot = first; this.#values[slot] !== EMPTY; slot = (slot + 1) & this.#mask) {
      if (this.#codes[slot] === code) return slot;
    }
    return -1;
  }

  #put(code: number, value: number): void {
    let slot = code & this.#mask;
    while (this.#values[slot] !== EMPTY) slot = (slot + 1) & this.#mask;
    this.#codes[slot] = code;
    this.#values[slot] = value;
  }

  #grow(): void {
    const codes = this.#codes;
    const values = this.#values;
    const numSlots = 2 * values.length;
    this.#codes = new Int32Array(numSlots);
    this.#values = new Int32Array(numSlots).fill(EMPTY);
    this.#mask = numSlots - 1;
    for (const [slot, value] of values.entries()) {
      if (value !== EMPTY) this.#put(codes[slot]!, value);
    }
  }
}
