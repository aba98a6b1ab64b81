import { blocksWithin } from './block-needs.js';
import { hasStarted, type KvCapacity, type SchedulableRequest } from './types.js';

/**
 * A remedy against thrashing. A request that is started where it just fits is paused as soon as the others have grown by
 * a block, and its context is computed again, and again. With a horizon, a request starts only if it and all that run in
 * front of it could generate that many more tokens in the free blocks; requests behind it in the list would
 * give way to it, so the blocks they hold count as free. While one request waits for this, none behind it
 * starts.
 *
 *   horizon 16, tokensPerBlock 8, 5 blocks free
 *     A  generation   held 2    grows by 2 within 16 tokens
 *     B  context      prompt 8  1 + 2                          2 + 3 <= 5: B starts
 *     C  context      prompt 8  1 + 2                          2 + 3 + 3 > 5: C waits, as do unstarted ones
 *
 * A request with nothing running in front of it always starts: it has nothing to wait for, and so the list moves on.
 */
export class StartHorizon {
  readonly #tokens: number;
  readonly #kv: Readonly<KvCapacity>;
  /** Blocks that the requests in front of the walk's place may still take. */
  #reserved = 0;
  /** Free blocks, and blocks held by started requests at or behind the walk's place. */
  #available: number;
  #isFirst = true;
  #startsAreHeld = false;

  constructor(tokens: number, requests: readonly SchedulableRequest[], kv: Readonly<KvCapacity>) {
    this.#tokens = tokens;
    this.#kv = kv;
    this.#available = kv.freeBlocks;
    for (const request of requests) if (hasStarted(request)) this.#available += request.blocksHeld;
  }

  /** True if the request at the walk's place has not started and has to wait. */
  holds(request: SchedulableRequest): boolean {
    if (this.#isFirst || hasStarted(request)) return false;
    const needed = blocksWithin(request, this.#tokens, this.#kv);
    this.#startsAreHeld ||= this.#reserved + needed > this.#available;
    return this.#startsAreHeld;
  }

  /** Sets aside the blocks that the request grows by: it runs, or will as soon as others let it. */
  reserve(request: SchedulableRequest): void {
    this.#reserved += blocksWithin(request, this.#tokens, this.#kv);
    if (hasStarted(request)) this.#available -= request.blocksHeld;
    this.#isFirst = false;
  }

  /** Notes that the request is paused and `credit` of its blocks become free. */
  pause(request: SchedulableRequest, credit: number): void {
    this.#available += credit - request.blocksHeld;
  }
}
