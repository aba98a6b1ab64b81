/** Requests that may pass the oldest one which has found no room. */
export const MAX_PASSED = 64;

interface Place<T> {
  readonly item: T;
  /** In the order of arrival. */
  readonly order: bigint;
  isParked: boolean;
  passed: number;
}

/**
 * Requests whose adapters did not fit into the engine together with those of others, the oldest first.
 *
 *   refuse --> [ parked ] --takeNext: one of the others has ended, or was accepted--> on its way --> accepted, or refused: parked in its old place
 *
 * Other requests with adapters may pass the oldest MAX_PASSED times. After that they are parked after it, so that room becomes free.
 */
export class RoomQueue<T> {
  readonly #places = new Map<T, Place<T>>();
  #numParked = 0;

  /** Requests that are parked here. */
  get size(): number {
    return this.#numParked;
  }

  /** It is parked here. */
  has(item: T): boolean {
    return this.#places.get(item)?.isParked === true;
  }

  /** Those that are parked. */
  *parked(): Iterable<T> {
    for (const { item, isParked } of this.#places.values()) if (isParked) yield item;
  }

  /** There was no room for it: it is parked. @param order of its arrival */
  refuse(item: T, order: bigint): void {
    const known = this.#places.get(item);
    if (known !== undefined) this.#park(known);
    else this.#add({ item, order, isParked: false, passed: 0 });
  }

  /** It is to be sent with its adapter. False: it has to wait, and is parked. @param order of its arrival */
  admits(item: T, order: bigint): boolean {
    if (this.#places.has(item)) return true; // on its way, as takeNext said
    const oldest: Place<T> | undefined = this.#places.values().next().value;
    if (oldest === undefined || oldest.order > order) return true;
    if (oldest.passed >= MAX_PASSED) {
      this.#add({ item, order, isParked: false, passed: 0 });
      return false;
    }
    oldest.passed++;
    return true;
  }

  /** There may be room for one more: the oldest that is parked is on its way from now on. Null: none is. */
  takeNext(): T | null {
    if (this.#numParked === 0) return null;
    for (const place of this.#places.values()) {
      if (!place.isParked) continue;
      place.isParked = false;
      this.#numParked--;
      return place.item;
    }
    return null;
  }

  /** It was accepted, or has ended. @returns false where it was never refused */
  leave(item: T): boolean {
    const place = this.#places.get(item);
    if (place === undefined) return false;
    this.#places.delete(item);
    if (place.isParked) this.#numParked--;
    return true;
  }

  #park(place: Place<T>): void {
    if (place.isParked) return;
    place.isParked = true;
    this.#numParked++;
  }

  #add(place: Place<T>): void {
    const behind = [...this.#places.values()].filter(({ order }) => order > place.order);
    for (const { item } of behind) this.#places.delete(item);
    for (const one of [place, ...behind]) this.#places.set(one.item, one);
    this.#park(place);
  }
}
