/** Place of an item in an order: those before and after it; null where it is the first, or the last one. */
export interface Links<T> {
  before: T | null;
  after: T | null;
  isIn: boolean;
}

export const noLinks = <T>(): Links<T> => ({ before: null, after: null, isIn: false });

/**
 * Items in the order in which they were last noted, so that those of long ago are found without a look at the others. Items have their links
 * themselves: most messages of a worker come here, and thousands of keys in a map would be looked up all over the memory.
 *
 *   a   b   c   d       note(b)       a   c   d   b
 */
export class NotedOrder<T> {
  readonly #linksOf: (item: T) => Links<T>;
  #first: T | null = null;
  #last: T | null = null;

  /** @param linksOf the links of an item in this order */
  constructor(linksOf: (item: T) => Links<T>) {
    this.#linksOf = linksOf;
  }

  /** The item is the last one from now on. */
  note(item: T): void {
    if (item === this.#last) return;
    const links = this.#linksOf(item);
    if (links.isIn) this.#unlink(links);
    links.isIn = true;
    links.before = this.#last;
    links.after = null;
    if (this.#last === null) this.#first = item;
    else this.#linksOf(this.#last).after = item;
    this.#last = item;
  }

  delete(item: T): void {
    const links = this.#linksOf(item);
    if (!links.isIn) return;
    this.#unlink(links);
    links.isIn = false;
  }

  /** From the one that was noted longest ago on. What is visited may be deleted meanwhile. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    let item = this.#first;
    while (item !== null) {
      const { after } = this.#linksOf(item);
      yield item;
      item = after;
    }
  }

  #unlink({ before, after }: Links<T>): void {
    if (before === null) this.#first = after;
    else this.#linksOf(before).after = after;
    if (after === null) this.#last = before;
    else this.#linksOf(after).before = before;
  }
}
