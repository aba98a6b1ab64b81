import { blocksWithin } from './block-needs.js';
import { hasStarted, type KvCapacity, type SchedulableRequest } from './types.js';

/**
 * A remedy against thrashing: a request that is started where it just fits is paused as soon as the others have grown
 * by a block, and its context is computed again, and again. With a horizon, a request starts only if all that run in
 * front of it, and it itself, could generate so many tokens more in the blocks that there are; those behind it in the
 * list would give way to it, so what they hold counts as free. While one waits for this, none behind it starts.
 *
 *   horizon 16, tokensPerBlock 8, 5 blocks free
 *     A  generation   held 2    grows by 2 within 16 tokens
 *     B  context      prompt 8  1 + 2                          2 + 3 <= 5: B starts
 *     C  context      prompt 8  1 + 2                          2 + 3 + 3 > 5: C waits, and who has not started behind it
 *
 * Where nothing runs in front, a request always starts: there is nothing to wait for, and so the list moves on.
 */
export class StartHorizon {
  readonly #tokens: number;
  readonly #kv: Readonly<KvCapacity>;
  /** What those that run in front of the walk's place may still take. */
  #reserved = 0;
  /** Free blocks, and those of requests at or behind the walk's place, that have started. */
  #available: number;
  #isFirst = true;
  #startsAreHeld = false;

  constructor(tokens: number, requests: readonly SchedulableRequest[], kv: Readonly<KvCapacity>) {
    this.#tokens = tokens;
    this.#kv = kv;
    this.#available = kv.freeBlocks;
    for (const request of requests) if (hasStarted(request)) this.#available += request.blocksHeld;
  }

  /** A request at the walk's place that has not started has to wait. */
  holds(request: SchedulableRequest): boolean {
    if (this.#isFirst || hasStarted(request)) return false;
    const needed = blocksWithin(request, this.#tokens, this.#kv);
    this.#startsAreHeld ||= this.#reserved + needed > this.#available;
    return this.#startsAreHeld;
  }

  /** The request runs, or will as soon as others let it: what it grows by is set aside. */
  reserve(request: SchedulableRequest): void {
    this.#reserved += blocksWithin(request, this.#tokens, this.#kv);
    if (hasStarted(request)) this.#available -= request.blocksHeld;
    this.#isFirst = false;
  }

  /** The request is paused, and so many of its blocks become free. */
  pause(request: SchedulableRequest, credit: number): void {
    this.#available += credit - request.blocksHeld;
  }
}
