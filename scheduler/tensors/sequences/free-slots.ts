/** Unused slots of an instance: the lowest is taken first. Only those that were ever taken cost memory. */
export class FreeSlots {
  readonly #count: number;
  /** Slots from here on were never taken. */
  #fresh = 0;
  /** A heap of those that were given back, the lowest on top. */
  readonly #returned: number[] = [];

  constructor(count: number) {
    this.#count = count;
  }

  /** The lowest one that is free; Infinity: none is. */
  get lowest(): number {
    const returned = this.#returned[0];
    if (returned !== undefined) return returned;
    return this.#fresh < this.#count ? this.#fresh : Number.POSITIVE_INFINITY;
  }

  /** Takes the lowest one, which there has to be. */
  take(): number {
    const slots = this.#returned;
    if (slots.length === 0) return this.#fresh++;
    const lowest = slots[0]!;
    const last = slots.pop()!;
    if (slots.length > 0) this.#sink(last);
    return lowest;
  }

  /** @param slot one that was taken */
  give(slot: number): void {
    const slots = this.#returned;
    let index = slots.push(slot) - 1;
    for (; index > 0; index = (index - 1) >> 1) {
      const parent = slots[(index - 1) >> 1]!;
      if (parent < slot) break;
      slots[index] = parent;
    }
    slots[index] = slot;
  }

  /** All are free. */
  reset(): void {
    this.#fresh = 0;
    this.#returned.length = 0;
  }

  /** Puts a slot on top and lets it go down to its place. */
  #sink(slot: number): void {
    const slots = this.#returned;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= slots.length) break;
      const child = left + 1 < slots.length && slots[left + 1]! < slots[left]! ? left + 1 : left;
      if (slots[child]! > slot) break;
      slots[index] = slots[child]!;
      index = child;
    }
    slots[index] = slot;
  }
}
