import { PagePool } from './page-pool.js';

interface Entry<V> {
  readonly pages: number;
  value: V;
  /** Number of holders. */
  uses: number;
}

/** An entry that made room for another. */
export interface Evicted<V> {
  id: bigint;
  value: V;
}

/**
 * Adapters by task id, in a limited number of pages. Those in use stay; of the others the one unused for longest goes first.
 *
 *              hold                         release of the last holder
 *   unused  ----------->  held (1, 2, ...)  -------------------------->  unused, behind all others
 *     |                                          unused:  7  3  9   <- released last
 *     +-- put of another without room: gone               ^ goes first
 *
 * A state machine without a clock; every call takes constant time, and a put one more for each adapter that it evicts.
 */
export class AdapterCache<V> {
  readonly #pool: PagePool;
  readonly #maxEntries: number;
  readonly #held = new Map<bigint, Entry<V>>();
  /** In the order of their release. */
  readonly #unused = new Map<bigint, Entry<V>>();
  #unusedPages = 0;

  /** @param maxEntries most adapters, whatever their size */
  constructor(numPages: number, maxEntries = Number.POSITIVE_INFINITY) {
    this.#pool = new PagePool(numPages);
    this.#maxEntries = maxEntries;
  }

  get numPages(): number {
    return this.#pool.numPages;
  }

  get usedPages(): number {
    return this.#pool.numPages - this.#pool.freePages;
  }

  /** Pages of adapters that are held. */
  get heldPages(): number {
    return this.usedPages - this.#unusedPages;
  }

  get size(): number {
    return this.#held.size + this.#unused.size;
  }

  has(id: bigint): boolean {
    return this.#held.has(id) || this.#unused.has(id);
  }

  get(id: bigint): V | undefined {
    return this.#entry(id)?.value;
  }

  pagesOf(id: bigint): number | null {
    return this.#entry(id)?.pages ?? null;
  }

  /** Number of holders; 0 also for an id that is not there. */
  uses(id: bigint): number {
    return this.#held.get(id)?.uses ?? 0;
  }

  /** True if `put` would find room. */
  hasRoom(pages: number): boolean {
    return pages <= this.#pool.freePages + this.#unusedPages && this.#held.size < this.#maxEntries;
  }

  /**
   * Adds an adapter that is not there, held once. Evicts others as far as needed and returns them; null, and nothing
   * changes, if there is no room with those that are held.
   */
  put(id: bigint, pages: number, value: V): Evicted<V>[] | null {
    if (this.has(id)) throw new Error(`Adapter ${id} is in the cache already.`);
    if (!this.hasRoom(pages)) return null;
    const evicted: Evicted<V>[] = [];
    while (this.#pool.freePages < pages || this.size >= this.#maxEntries) {
      const [oldest] = this.#unused.keys();
      evicted.push({ id: oldest!, value: this.remove(oldest!) });
    }
    this.#pool.take(pages);
    this.#held.set(id, { pages, value, uses: 1 });
    return evicted;
  }

  /** Changes the value of an adapter that is there. */
  set(id: bigint, value: V): void {
    this.#entry(id)!.value = value;
  }

  /** Adds a holder to an adapter that is there. */
  hold(id: bigint): void {
    const entry = this.#entry(id);
    if (entry === undefined) throw new Error(`Adapter ${id} is not in the cache; it cannot be held.`);
    if (entry.uses === 0) {
      this.#unused.delete(id);
      this.#unusedPages -= entry.pages;
      this.#held.set(id, entry);
    }
    entry.uses += 1;
  }

  /** Removes a holder. */
  release(id: bigint): void {
    const entry = this.#held.get(id);
    if (entry === undefined) throw new Error(`Adapter ${id} is released, but no request holds it.`);
    entry.uses -= 1;
    if (entry.uses > 0) return;
    this.#held.delete(id);
    this.#unused.set(id, entry);
    this.#unusedPages += entry.pages;
  }

  /** Removes an adapter without holders and returns its value. */
  remove(id: bigint): V {
    const entry = this.#unused.get(id);
    if (entry === undefined) throw new Error(`Adapter ${id} is held or not there; it cannot be removed.`);
    this.#unused.delete(id);
    this.#unusedPages -= entry.pages;
    this.#pool.give(entry.pages);
    return entry.value;
  }

  /** Ids of all adapters, held ones first. */
  ids(): bigint[] {
    return [...this.#held.keys(), ...this.#unused.keys()];
  }

  #entry(id: bigint): Entry<V> | undefined {
    return this.#held.get(id) ?? this.#unused.get(id);
  }
}
