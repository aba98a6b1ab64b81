/** Events by their time; those of one time by their rank, and then in the order in which they came. */
export class EventQueue<Event> {
  readonly #heap: { at: number; rank: number; order: number; event: Event }[] = [];
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** Time of the next event; Infinity: there is none. */
  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  push(at: number, event: Event, rank = 0): void {
    const heap = this.#heap;
    heap.push({ at, rank, order: this.#order++, event });
    let place = heap.length - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#isBefore(place, parent)) break;
      this.#swap(place, parent);
      place = parent;
    }
  }

  pop(): { at: number; event: Event } | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let place = 0; ; ) {
      const [left, right] = [2 * place + 1, 2 * place + 2];
      let least = place;
      if (left < heap.length && this.#isBefore(left, least)) least = left;
      if (right < heap.length && this.#isBefore(right, least)) least = right;
      if (least === place) return first;
      this.#swap(place, least);
      place = least;
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one]!, this.#heap[other]!];
    if (a.at !== b.at) return a.at < b.at;
    return a.rank === b.rank ? a.order < b.order : a.rank < b.rank;
  }

  #swap(one: number, other: number): void {
    const held = this.#heap[one]!;
    this.#heap[one] = this.#heap[other]!;
    this.#heap[other] = held;
  }
}
