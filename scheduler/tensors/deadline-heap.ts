/** Something with a time at which it is over. */
export interface Dated {
  readonly deadlineUs: number;
  /** Grows with the order of arrival: who of two with the same deadline is over first. */
  readonly order: number;
  /** Its place in the heap; -1: it is not in it. */
  heapIndex: number;
}

/**
 * The nearest deadline first. A binary heap in which everything knows its place, so that what leaves early is taken out and
 * does not stay until its time. Deadlines that come in order, as those of one timeout do, are added in one step.
 */
export class DeadlineHeap<T extends Dated> {
  readonly #items: T[] = [];

  get first(): T | null {
    return this.#items[0] ?? null;
  }

  add(item: T): void {
    item.heapIndex = this.#items.push(item) - 1;
    this.#rise(item);
  }

  /** Nothing happens where it is not in the heap. */
  remove(item: T): void {
    const { heapIndex } = item;
    if (heapIndex < 0) return;
    const last = this.#items.pop()!;
    item.heapIndex = -1;
    if (last === item) return;
    this.#put(last, heapIndex);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(item: T): void {
    while (item.heapIndex > 0) {
      const parent = this.#items[(item.heapIndex - 1) >> 1]!;
      if (isSooner(parent, item)) return;
      this.#swap(parent, item);
    }
  }

  #sink(item: T): void {
    for (;;) {
      const left = this.#items[2 * item.heapIndex + 1];
      if (left === undefined) return;
      const right = this.#items[2 * item.heapIndex + 2];
      const child = right !== undefined && isSooner(right, left) ? right : left;
      if (isSooner(item, child)) return;
      this.#swap(item, child);
    }
  }

  #swap(one: T, other: T): void {
    const { heapIndex } = one;
    this.#put(one, other.heapIndex);
    this.#put(other, heapIndex);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }
}

function isSooner(one: Dated, other: Dated): boolean {
  return (
    one.deadlineUs < other.deadlineUs || (one.deadlineUs === other.deadlineUs && one.order < other.order)
  );
}
