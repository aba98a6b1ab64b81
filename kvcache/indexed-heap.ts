/**
 * A binary heap of block numbers that also knows where each block stands, so that any of them can be taken out.
 * Push, pop and remove are O(log n).
 */
export class IndexedHeap {
  readonly #precedes: (a: number, b: number) => boolean;
  readonly #heap: Int32Array;
  /** Place of each block in the heap, or -1. */
  readonly #places: Int32Array;
  #size = 0;

  /** @param precedes true if block a comes before block b; its answer may change only for blocks not in the heap */
  constructor(numBlocks: number, precedes: (a: number, b: number) => boolean) {
    this.#precedes = precedes;
    this.#heap = new Int32Array(numBlocks);
    this.#places = new Int32Array(numBlocks).fill(-1);
  }

  get size(): number {
    return this.#size;
  }

  has(block: number): boolean {
    return this.#places[block]! >= 0;
  }

  /** First block of the heap; -1 if it is empty. */
  peek(): number {
    return this.#size === 0 ? -1 : this.#heap[0]!;
  }

  push(block: number): void {
    if (this.has(block)) throw new Error(`Block ${block} is in the heap already.`);
    this.#heap[this.#size] = block;
    this.#places[block] = this.#size;
    this.#size += 1;
    this.#rise(this.#size - 1);
  }

  /** Takes the block out of the heap; does nothing if it is not there. */
  remove(block: number): void {
    const place = this.#places[block]!;
    if (place < 0) return;
    this.#places[block] = -1;
    this.#size -= 1;
    if (place === this.#size) return;
    const moved = this.#heap[this.#size]!;
    this.#heap[place] = moved;
    this.#places[moved] = place;
    this.#rise(place);
    this.#sink(this.#places[moved]!);
  }

  #rise(place: number): void {
    let current = place;
    while (current > 0) {
      const parent = (current - 1) >> 1;
      if (!this.#precedes(this.#heap[current]!, this.#heap[parent]!)) return;
      this.#swap(current, parent);
      current = parent;
    }
  }

  #sink(place: number): void {
    let current = place;
    for (;;) {
      let first = current;
      for (const child of [2 * current + 1, 2 * current + 2]) {
        if (child < this.#size && this.#precedes(this.#heap[child]!, this.#heap[first]!)) first = child;
      }
      if (first === current) return;
      this.#swap(current, first);
      current = first;
    }
  }

  #swap(a: number, b: number): void {
    const blockA = this.#heap[a]!;
    const blockB = this.#heap[b]!;
    this.#heap[a] = blockB;
    this.#heap[b] = blockA;
    this.#places[blockA] = b;
    this.#places[blockB] = a;
  }
}
