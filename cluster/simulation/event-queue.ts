interface Order {
  at: number;
  rank: number;
  order: number;
}

/** Events by their time; those of one time by their rank, and then in the order in which they came. */
export class EventQueue<Event> {
  readonly #heap: (Order & { event: Event })[] = [];
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
    const entry = { at, rank, order: this.#order++, event };
    let place = heap.length;
    heap.push(entry);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = entry;
  }

  pop(): { at: number; event: Event } | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let place = 0;
    for (let least = 1; least < heap.length; least = 2 * place + 1) {
      if (least + 1 < heap.length && isBefore(heap[least + 1]!, heap[least]!)) least += 1;
      if (!isBefore(heap[least]!, last)) break;
      heap[place] = heap[least]!;
      place = least;
    }
    heap[place] = last;
    return first;
  }
}

function isBefore(a: Order, b: Order): boolean {
  if (a.at !== b.at) return a.at < b.at;
  return a.rank === b.rank ? a.order < b.order : a.rank < b.rank;
}
