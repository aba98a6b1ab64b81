import { MAX_TIMER_MS } from '../../base/int32.js';
import { monotonicMs } from '../clock.js';

/**
 * Milliseconds before a request's time at which polling begins: timers have a resolution of a millisecond and may be
 * late by more.
 */
const POLL_MS = 2;

export interface Timed {
  /** Time to issue it, on the monotonic clock. */
  atMs: number;
}

/**
 * Calls `issue` for each item at its time, in the order of times. All due items are issued together before
 * the event loop continues. With `busyWait` the clock is polled before an issue, between two turns of the
 * event loop, so that answers are still read; else it is left to timers, which are late by a millisecond or
 * so.
 */
export class Issuer<T extends Timed> {
  readonly #issue: (item: T) => void;
  readonly #busyWait: boolean;
  /** Items, ordered by time from #next on. */
  #items: T[] = [];
  #next = 0;
  #timer: NodeJS.Timeout | null = null;
  #polling = false;

  constructor(issue: (item: T) => void, busyWait: boolean) {
    this.#issue = issue;
    this.#busyWait = busyWait;
  }

  get waiting(): number {
    return this.#items.length - this.#next;
  }

  add(item: T): void {
    const items = this.#items;
    // Most items come in order.
    let at = items.length;
    while (at > this.#next && items[at - 1]!.atMs > item.atMs) at--;
    if (at === items.length) items.push(item);
    else items.splice(at, 0, item);
    if (at === this.#next) this.#arm();
  }

  /** Removes and returns all waiting items. */
  clear(): T[] {
    const left = this.#items.slice(this.#next);
    this.#items = [];
    this.#next = 0;
    this.#disarm();
    return left;
  }

  #arm(): void {
    this.#disarm();
    const next = this.#items[this.#next];
    if (next === undefined) return;
    const delay = next.atMs - monotonicMs();
    if (this.#busyWait && delay < POLL_MS) {
      this.#polling = true;
      setImmediate(() => this.#poll());
      return;
    }
    const wait = this.#busyWait ? delay - POLL_MS : delay;
    // Timers count whole milliseconds from the loop's last look at the clock, and round a delay down.
    this.#timer = setTimeout(() => this.#drain(), Math.min(MAX_TIMER_MS, Math.max(0, wait)));
  }

  #poll(): void {
    if (this.#polling) this.#drain();
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#polling = false;
  }

  #drain(): void {
    this.#timer = null;
    for (;;) {
      const item = this.#items[this.#next];
      if (item === undefined || item.atMs > monotonicMs()) break;
      this.#next++;
      this.#issue(item);
    }
    if (this.#next > 1024 && this.#next > this.#items.length / 2) {
      this.#items = this.#items.slice(this.#next);
      this.#next = 0;
    }
    this.#arm();
  }
}
