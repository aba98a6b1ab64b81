/**
 * Number of pages that an adapter takes. Each of its module-layers lies in one page; they are put one after the other, and
 * one that no longer fits begins the next page.
 *
 *   pages of 8 rows       |  0  0  0  1  1  . . . |  2  2  2  2  2  3  3  3 |      module-layers of 3, 2, 5 and 3 rows
 *
 * @param rows rows of each module-layer, none more than rowsPerPage
 */
export function pagesFor(rows: Iterable<number>, rowsPerPage: number): number {
  let pages = 0;
  let left = 0;
  for (const needed of rows) {
    if (needed > rowsPerPage) {
      throw new RangeError(`A module-layer of ${needed} rows fits into no page; pages have ${rowsPerPage}.`);
    }
    if (needed > left) {
      pages += 1;
      left = rowsPerPage;
    }
    left -= needed;
  }
  return pages;
}

/** Pages of a cache, counted. Which of them an adapter has does not matter: it is used only as a whole. */
export class PagePool {
  readonly numPages: number;
  #free: number;

  constructor(numPages: number) {
    this.numPages = numPages;
    this.#free = numPages;
  }

  get freePages(): number {
    return this.#free;
  }

  take(pages: number): void {
    if (pages > this.#free) {
      throw new RangeError(`${pages} pages are to be taken; ${this.#free} of ${this.numPages} are free.`);
    }
    this.#free -= pages;
  }

  give(pages: number): void {
    if (this.#free + pages > this.numPages) {
      throw new RangeError(
        `${pages} pages are given back; ${this.#free} of ${this.numPages} are free already.`,
      );
    }
    this.#free += pages;
  }
}
