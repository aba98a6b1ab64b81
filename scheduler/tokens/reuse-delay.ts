import { hasStarted, type SchedulableRequest } from './types.js';

/**
 * The reuse delay: a request waits for one iteration if another request is about to write the first block that it
 * misses. It then finds the block in the cache instead of computing it a second time.
 *
 *   cached  [a]      A  a b c d   not started   runs: it will write b
 *                    B  a b x y   not started   waits for b
 *                    C  a e f g   not started   runs: it will write e
 *
 * Comparing first missing blocks is enough: if the block that B misses first is any that A will write, then A has all
 * blocks before it in common with B, these are cached, and so it is also the first that A misses. The delay concerns
 * only a request's first chunk. Requests whose context is running in chunks count as writers from the beginning, since
 * the blocks they write are shared when their context is complete.
 */
export class ReuseDelay {
  readonly #beingWritten = new Set<number>();

  constructor(requests: readonly SchedulableRequest[]) {
    for (const request of requests) {
      if (request.phase === 'context' && hasStarted(request)) this.schedules(request);
    }
  }

  holds(request: SchedulableRequest): boolean {
    const { firstMissingBlock = null } = request;
    if (firstMissingBlock === null || request.phase !== 'context' || hasStarted(request)) return false;
    return this.#beingWritten.has(firstMissingBlock);
  }

  /** Notes that the request runs in this iteration. */
  schedules({ phase, firstMissingBlock = null }: SchedulableRequest): void {
    if (phase === 'context' && firstMissingBlock !== null) this.#beingWritten.add(firstMissingBlock);
  }
}
