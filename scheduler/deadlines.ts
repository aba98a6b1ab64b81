interface Deadline<T> {
  atUs: number;
  /** Of all that were added: elements of one time keep their order. */
  number: number;
  element: T;
}

const isBefore = (a: Deadline<unknown>, b: Deadline<unknown>) =>
  a.atUs < b.atUs || (a.atUs === b.atUs && a.number < b.number);

/** Elements by time, the earliest first: a binary heap. One that nobody waits for any more stays until its time comes. */
export class Deadlines<T> {
  readonly #heap: Deadline<T>[] = [];
  #added = 0;

  add(element: T, atUs: number): void {
    const heap = this.#heap;
    const entry = { atUs, number: this.#added++, element };
    let i = heap.push(entry) - 1;
    for (let parent = (i - 1) >> 1; i > 0 && isBefore(entry, heap[parent]!); parent = (i - 1) >> 1) {
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  /** The earliest time of an element that `isMeant`; null: there is none. Others before it are dropped. */
  earliest(isMeant: (element: T) => boolean): number | null {
    while (this.#heap.length > 0 && !isMeant(this.#heap[0]!.element)) this.#pop();
    return this.#heap[0]?.atUs ?? null;
  }

  /** Takes the earliest element whose time is no later than now; null: there is none. */
  takeDue(nowUs: number): T | null {
    const first = this.#heap[0];
    if (first === undefined || first.atUs > nowUs) return null;
    this.#pop();
    return first.element;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return;
    let i = 0;
    for (let child = 1; child < length; child = 2 * i + 1) {
      if (child + 1 < length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}
