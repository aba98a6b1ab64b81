import { MAX_TIMER_MS } from '../../base/int32.js';

/** A timer of Node.js counts whole milliseconds: what is due within half of one is due. */
const TICK_US = 1000;

/** A clock of microseconds that never goes back, and one timer on it. */
export class WakeTimer {
  readonly #onWake: () => void;
  #timer: NodeJS.Timeout | null = null;
  #dueUs: number | null = null;
  #lastUs = 0;

  constructor(onWake: () => void) {
    this.#onWake = onWake;
  }

  nowUs(): number {
    this.#lastUs = Math.max(this.#lastUs, performance.now() * 1000);
    return this.#lastUs;
  }

  /** Wakes at this time, and at no other; null: never. */
  set(dueUs: number | null): void {
    if (dueUs === this.#dueUs) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#dueUs = dueUs;
    if (dueUs === null || dueUs === Number.POSITIVE_INFINITY) return;
    const ms = Math.max(1, Math.round((dueUs - this.nowUs()) / TICK_US));
    this.#timer = setTimeout(() => this.#wake(dueUs), Math.min(ms, MAX_TIMER_MS));
  }

  #wake(dueUs: number): void {
    this.#timer = null;
    this.#dueUs = null;
    // A timer may fire a little early: the caller that asked for this time sees it as reached.
    if (dueUs - this.nowUs() < TICK_US) this.#lastUs = Math.max(this.#lastUs, dueUs);
    this.#onWake();
  }
}
