import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds of beginning requests after which everything else has its turn. */
const MAX_MS = 10;
/** Most requests of those that wait that are begun in one turn. */
const MAX_A_TURN = 64;

type Begin = (incoming: IncomingMessage, outgoing: ServerResponse) => void;
type Exchange = readonly [IncomingMessage, ServerResponse];

/** Time and turns of the event loop. */
export interface LoopClock {
  now(): number;
  /** Calls back in the next turn, with all that the callback begins done before the one after it is called. */
  nextTurn(callback: () => void): void;
}

const LOOP: LoopClock = { now: () => performance.now(), nextTurn: (callback) => void setImmediate(callback) };

/**
 * Begins requests for some milliseconds at a time. Node.js begins all that lie in its sockets in one turn of
 * the event loop: hundreds of them would delay everything else for as long as all of them take, tokens of
 * others and /health included.
 *
 *   turn      1              2              3
 *   arrive    A B C D E      F  GET
 *   begun     A B            C  GET D       E F
 *
 * Requests that only ask (GET) have a line of their own, which takes turns with the other one.
 */
export class PacedBegins {
  readonly #begin: Begin;
  readonly #clock: LoopClock;
  readonly #asking: Exchange[] = [];
  readonly #others: Exchange[] = [];
  #isAskingFirst = true;
  /** Time of the first request begun in this turn; null: none was. */
  #startMs: number | null = null;
  /** True where the end of this turn will be signalled. */
  #isTurning = false;

  constructor(begin: Begin, clock: LoopClock = LOOP) {
    this.#begin = begin;
    this.#clock = clock;
  }

  /** Begins a request, now or when it is its turn. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void {
    if (!this.#isTurning) {
      this.#isTurning = true;
      this.#clock.nextTurn(() => this.#turn());
    }
    if (this.waiting === 0 && this.#hasTime()) this.#begin(incoming, outgoing);
    else (incoming.method === 'GET' ? this.#asking : this.#others).push([incoming, outgoing]);
  }

  /** Number of requests that wait. */
  get waiting(): number {
    return this.#asking.length + this.#others.length;
  }

  #turn(): void {
    this.#startMs = null;
    const count = Math.min(this.waiting, MAX_A_TURN);
    this.#isTurning = count > 0;
    // One callback for each, since a request is begun with all of its promises once its callback has returned.
    for (let i = 0; i < count; i++) this.#clock.nextTurn(() => this.#next());
    if (count > 0) this.#clock.nextTurn(() => this.#turn());
  }

  #next(): void {
    if (!this.#hasTime()) return;
    for (let next = this.#shift(); next !== undefined; next = this.#shift()) {
      // A request whose connection is gone needs no answer.
      if (next[1].destroyed) continue;
      this.#begin(...next);
      return;
    }
  }

  #hasTime(): boolean {
    const now = this.#clock.now();
    this.#startMs ??= now;
    return now - this.#startMs < MAX_MS;
  }

  #shift(): Exchange | undefined {
    const lines = this.#isAskingFirst ? [this.#asking, this.#others] : [this.#others, this.#asking];
    this.#isAskingFirst = !this.#isAskingFirst;
    return lines[0]!.shift() ?? lines[1]!.shift();
  }
}
