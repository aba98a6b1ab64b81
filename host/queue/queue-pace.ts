/** Number of latest departures that determine the pace. */
const WINDOW = 64;

/**
 * Measures how fast requests leave a queue, and so how long a new one would wait. Times are in milliseconds on one
 * clock that the caller reads.
 */
export class QueuePace {
  readonly #departures: number[] = [];

  /** Notes that `count` requests left the queue for the engine. */
  note(count: number, nowMs: number): void {
    for (let index = 0; index < Math.min(count, WINDOW); index++) this.#departures.push(nowMs);
    this.#departures.splice(0, Math.max(0, this.#departures.length - WINDOW));
  }

  /**
   * Milliseconds until `queued` requests have left at the pace of the last WINDOW departures; null before there is a
   * pace. While none leaves the pace falls, and the wait grows.
   */
  waitMs(queued: number, nowMs: number): number | null {
    const first = this.#departures[0];
    if (first === undefined || this.#departures.length < 2 || nowMs <= first) return null;
    return (queued * (nowMs - first)) / this.#departures.length;
  }
}
