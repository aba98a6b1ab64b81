/**
 * Most log-probs and gathered tokens of one request sent in a turn of the event loop: some milliseconds of
 * work.
 */
export const ENTRIES_A_TURN = 4096;

export interface TurnShareEvents {
  /** Called when the share is used up: nothing more may be sent in this turn. */
  onUsed: () => void;
  /** Called in the turn after one whose share was used up. */
  onNext: () => void;
}

/**
 * Limits what one request may send in a turn of the event loop. The log-probs of a hundred sequences come in
 * one message of the engine, and writing them all at once would delay the tokens of all other requests. The
 * rest gathers and is sent in the next turn.
 */
export class TurnShare {
  readonly #events: TurnShareEvents;
  #told = 0;
  #isUsed = false;

  constructor(events: TurnShareEvents) {
    this.#events = events;
  }

  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Counts entries written. Costs nothing for 0. */
  use(entries: number): void {
    if (entries === 0) return;
    if (this.#told === 0) setImmediate(() => this.#next());
    this.#told += entries;
    if (this.#told < ENTRIES_A_TURN || this.#isUsed) return;
    this.#isUsed = true;
    this.#events.onUsed();
  }

  #next(): void {
    const wasUsed = this.#isUsed;
    this.#told = 0;
    this.#isUsed = false;
    if (wasUsed) this.#events.onNext();
  }
}
