/** One item's place in a chain, with which the item can be taken out again. */
export interface Link<T> {
  readonly item: T;
  previous: Link<T> | null;
  next: Link<T> | null;
}

/**
 * Items in a row that come at the end or anywhere else, and may leave from anywhere, each in a fixed number of steps. An array would move all that
 * come after one that leaves; a marked hole in it would have to be skipped until the array is packed again.
 */
export class Chain<T> {
  #first: Link<T> | null = null;
  #last: Link<T> | null = null;
  #size = 0;

  get first(): Link<T> | null {
    return this.#first;
  }

  get size(): number {
    return this.#size;
  }

  push(item: T): Link<T> {
    const link: Link<T> = { item, previous: this.#last, next: null };
    if (this.#last === null) this.#first = link;
    else this.#last.next = link;
    this.#last = link;
    this.#size++;
    return link;
  }

  /** Inserts an item before that of a link; null: at the end. */
  insert(item: T, before: Link<T> | null): Link<T> {
    if (before === null) return this.push(item);
    const link: Link<T> = { item, previous: before.previous, next: before };
    if (before.previous === null) this.#first = link;
    else before.previous.next = link;
    before.previous = link;
    this.#size++;
    return link;
  }

  /** @param link one of this chain, which is taken out once */
  remove(link: Link<T>): void {
    if (link.previous === null) this.#first = link.next;
    else link.previous.next = link.next;
    if (link.next === null) this.#last = link.previous;
    else link.next.previous = link.previous;
    this.#size--;
  }
}
