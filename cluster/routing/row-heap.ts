/**
 * Rows of workers by what the cheapest of each may cost, equal ones by their places: the tree of WorkerLoads is searched from its top
 * in this order. Columns in place of objects, since each request searches it.
 */
export class RowHeap {
  readonly #costs: number[] = [];
  readonly #places: number[] = [];
  readonly #rows: number[] = [];

  get size(): number {
    return this.#rows.length;
  }

  /** What the first one may cost; undefined: there is none. */
  get leastCost(): number | undefined {
    return this.#costs[0];
  }

  clear(): void {
    this.#costs.length = 0;
    this.#places.length = 0;
    this.#rows.length = 0;
  }

  push(cost: number, place: number, row: number): void {
    let at = this.#rows.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBehind(parent, cost, place)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, cost, place, row);
  }

  /** Takes out the first one; the heap must have one. */
  pop(): number {
    const first = this.#rows[0]!;
    const [cost, place, row] = [this.#costs.pop()!, this.#places.pop()!, this.#rows.pop()!];
    const { length } = this.#rows;
    if (length === 0) return first;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && this.#isBehind(child, this.#costs[child + 1]!, this.#places[child + 1]!))
        child += 1;
      if (this.#isBehind(child, cost, place)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, cost, place, row);
    return first;
  }

  #isBehind(at: number, cost: number, place: number): boolean {
    const own = this.#costs[at]!;
    return own === cost ? this.#places[at]! > place : own > cost;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#costs[from]!, this.#places[from]!, this.#rows[from]!);
  }

  #put(at: number, cost: number, place: number, row: number): void {
    this.#costs[at] = cost;
    this.#places[at] = place;
    this.#rows[at] = row;
  }
}
