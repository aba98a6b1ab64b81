/** Time of a gateway's one loop, in milliseconds. Each is rounded to nanoseconds. */
export interface GatewayCost {
  /** A request, from its coming to its end, without what follows. */
  requestMs: number;
  /** Each token of its answer. */
  tokenMs: number;
  /** A message of a worker: tokens of one iteration, blocks that its cache has got or lost, or that it is there. */
  messageMs: number;
}

/** As `npm run bench -- gateway` measures it, which prints both. */
export const GATEWAY_COST: Readonly<GatewayCost> = { requestMs: 0.25, tokenMs: 0.0027, messageMs: 0.007 };

/** Interval at which workers send beats. */
const BEAT_NS = 1e9;

/**
 * The loop of a gateway, which does one thing after another in the order of their coming. Beats come evenly, one of each worker every second.
 *
 *   comes   a b   c              a takes 2, b 1, c 1
 *   loop    a a b c              b is over 1 later than it could be, c at once
 *
 * Times are in whole nanoseconds, and never go back.
 */
export class GatewayLoop {
  readonly #requestNs: number;
  readonly #tokenNs: number;
  readonly #messageNs: number;
  readonly #beatEveryNs: number;
  #numBeats = 0;
  #freeNs = 0;
  #busyNs = 0;

  /** @param workers that send beats */
  constructor({ requestMs, tokenMs, messageMs }: GatewayCost, workers: number) {
    this.#requestNs = Math.round(1e6 * requestMs);
    this.#tokenNs = Math.round(1e6 * tokenMs);
    this.#messageNs = Math.round(1e6 * messageMs);
    this.#beatEveryNs = BEAT_NS / workers;
  }

  /** Nanoseconds of work so far. */
  get busyNs(): number {
    return this.#busyNs;
  }

  /** A request has come. Returns when it can go to a worker. */
  request(nowNs: number): number {
    return this.#serve(nowNs, this.#requestNs);
  }

  /** A message with `tokens` tokens has come. Returns when it is read. */
  message(nowNs: number, tokens: number): number {
    return this.#serve(nowNs, this.#messageNs + tokens * this.#tokenNs);
  }

  #serve(nowNs: number, costNs: number): number {
    this.#beat(nowNs);
    this.#busyNs += costNs;
    this.#freeNs = Math.max(nowNs, this.#freeNs) + costNs;
    return this.#freeNs;
  }

  /**
   * Beats until now. Between them nothing else comes, so that the loop is last free after the first of them,
   * or after the last.
   */
  #beat(nowNs: number): void {
    const all = Math.floor(nowNs / this.#beatEveryNs);
    const count = all - this.#numBeats;
    if (count <= 0) return;
    const firstNs = (this.#numBeats + 1) * this.#beatEveryNs;
    this.#numBeats = all;
    if (this.#messageNs === 0) return;
    const costNs = count * this.#messageNs;
    this.#busyNs += costNs;
    const lastNs = all * this.#beatEveryNs + this.#messageNs;
    this.#freeNs = Math.round(Math.max(this.#freeNs + costNs, firstNs + costNs, lastNs));
  }
}
