import { Chain, type Link } from './chain.js';

interface Slot<R, A> {
  readonly request: R;
  readonly answers: A[];
  isOver: boolean;
}

/** An answer that may go now, and the request that it answers. */
export interface Release<R, A> {
  request: R;
  answer: A;
}

/**
 * Answers in the order of their requests, whichever is computed first (`preserve_ordering` of Triton).
 *
 *   begin A, B, C     waiting   A     B     C
 *   settle B: b                 A     B:b   C           nothing may go
 *   settle A: a                                         a and b go; C is the first now
 *   answer C: c1                C                       c1 goes at once: no request is before C
 *
 * Every request that began has to be settled or to leave, or all answers behind it are held for ever.
 */
export class ReplyOrder<R, A> {
  readonly #slots = new Map<R, Link<Slot<R, A>>>();
  readonly #order = new Chain<Slot<R, A>>();

  /** Requests that are not settled, or behind one that is not. */
  get size(): number {
    return this.#order.size;
  }

  /** Its answers are held, or go at once, in their turn. */
  has(request: R): boolean {
    return this.#slots.has(request);
  }

  /** A request has come; its answers go after those of all that came before. */
  begin(request: R): void {
    if (this.#slots.has(request))
      throw new TypeError('A request that is being answered cannot begin once more.');
    this.#slots.set(request, this.#order.push({ request, answers: [], isOver: false }));
  }

  /** One of several answers to a request. @returns what may go now, in order */
  answer(request: R, answer: A): Release<R, A>[] {
    const link = this.#slots.get(request);
    if (link === undefined || link.item.isOver) return [];
    link.item.answers.push(answer);
    return link === this.#order.first ? this.#release() : [];
  }

  /** The only answer to a request, or its last one. @returns what may go now, in order */
  settle(request: R, answer: A): Release<R, A>[] {
    const link = this.#slots.get(request);
    if (link === undefined || link.item.isOver) return [];
    link.item.answers.push(answer);
    link.item.isOver = true;
    return link === this.#order.first ? this.#release() : [];
  }

  /** There will be no further answer to a request. @returns what may go now, in order */
  end(request: R): Release<R, A>[] {
    const link = this.#slots.get(request);
    if (link === undefined) return [];
    link.item.isOver = true;
    return link === this.#order.first ? this.#release() : [];
  }

  /**
   * The sender of the request has left: its remaining answers are dropped. @returns what may go now, in order
   */
  leave(request: R): Release<R, A>[] {
    const link = this.#slots.get(request);
    if (link !== undefined) link.item.answers.length = 0;
    return this.end(request);
  }

  #release(): Release<R, A>[] {
    const released: Release<R, A>[] = [];
    for (let link = this.#order.first; link !== null; link = link.next) {
      const { request, answers, isOver } = link.item;
      for (const answer of answers.splice(0)) released.push({ request, answer });
      if (!isOver) break;
      this.#order.remove(link);
      this.#slots.delete(request);
    }
    return released;
  }
}
