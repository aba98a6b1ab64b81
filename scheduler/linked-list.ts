/** An element of a list, with its neighbours. */
export interface Linked<T extends Linked<T>> {
  previous: T | null;
  next: T | null;
}

/** A queue whose elements can leave it from anywhere at once. An element is in one list at most. */
export class LinkedList<T extends Linked<T>> {
  first: T | null = null;
  #last: T | null = null;

  append(element: T): void {
    element.previous = this.#last;
    element.next = null;
    if (this.#last === null) this.first = element;
    else this.#last.next = element;
    this.#last = element;
  }

  remove(element: T): void {
    const { previous, next } = element;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
  }
}
