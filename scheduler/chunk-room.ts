import type { Chunking, SchedulableRequest } from './types.js';

/** Prompt tokens of a context that are still to be computed. */
export function contextLeft(request: SchedulableRequest): number {
  return request.promptLength - request.contextPosition;
}

/** All chunks of an iteration together take at most so many times the time of one that is cut. */
export const MOST_TOGETHER = 4;

/**
 * What an iteration still has for chunks: tokens, and time. A chunk that is cut takes its share of the time of one, so that
 * they come to no more together; chunks that end their contexts may come to MOST_TOGETHER times as much, since every one of
 * them is a request's first token, and what waits behind them is another's next.
 */
export class ChunkRoom {
  readonly #unit: number;
  readonly #maxContextLength: number;
  readonly #longestChunk: (request: SchedulableRequest) => number;
  #tokens: number;
  /** Share of the time that is left for chunks that are cut: see Chunking.longestChunk. */
  #time = 1;
  /** What is left of the time of all chunks, in the same measure. */
  #together = MOST_TOGETHER;

  constructor(capacity: number, { unit, maxContextLength, longestChunk }: Readonly<Chunking>) {
    this.#tokens = capacity;
    this.#unit = unit;
    this.#maxContextLength = maxContextLength ?? Number.POSITIVE_INFINITY;
    this.#longestChunk = longestChunk ?? (() => Number.POSITIVE_INFINITY);
  }

  /** Whether each of them can run to its end in this iteration, with the drafts that ride on them. */
  holdsAll(contexts: readonly SchedulableRequest[]): boolean {
    let wanted = 0;
    let time = 0;
    for (const request of contexts) {
      const longest = this.#longestChunk(request);
      const whole = contextLeft(request) + request.draftLength;
      if (whole > this.#maxContextLength || contextLeft(request) > longest) return false;
      wanted += whole;
      time += contextLeft(request) / longest;
    }
    return wanted <= this.#tokens && time <= this.#together + ROUNDING;
  }

  /** Whether the context can run to its end with what is left. */
  holdsWhole(request: SchedulableRequest): boolean {
    const wanted = contextLeft(request);
    const longest = this.#longestChunk(request);
    const inTime = Math.min(longest, within(this.#together, longest));
    return wanted <= Math.min(this.#tokens, this.#maxContextLength, inTime);
  }

  /** Takes for a request as much as there is, out of the tokens and, where the chunk is cut, out of the time. */
  take(request: SchedulableRequest): number {
    const wanted = contextLeft(request);
    const longest = this.#longestChunk(request);
    if (this.holdsWhole(request)) {
      this.#spend(wanted, longest, false);
      return wanted;
    }
    const most = Math.min(wanted, this.#tokens, this.#maxContextLength, this.#inTime(longest));
    const size = most - (most % Math.min(this.#unit, longest));
    this.#spend(size, longest, true);
    return size;
  }

  /** One unit, or the rest, for a context that has `taken` so many in this iteration; 0 where that is too much. */
  takeUnit(request: SchedulableRequest, taken: number): number {
    const longest = this.#longestChunk(request);
    const wanted = contextLeft(request);
    const more = Math.min(this.#unit, longest, wanted - taken);
    const isCut = wanted > longest;
    if (more > this.#tokens || taken + more > this.#maxContextLength) return 0;
    if (more > (isCut ? this.#inTime(longest) : within(this.#together, longest))) return 0;
    this.#spend(more, longest, isCut);
    return more;
  }

  /** Tokens of a chunk that is cut, where one of `longest` tokens takes all the time of such chunks. */
  #inTime(longest: number): number {
    return within(Math.min(this.#time, this.#together), longest);
  }

  #spend(size: number, longest: number, isCut: boolean): void {
    this.#tokens -= size;
    this.#together -= size / longest;
    if (isCut) this.#time -= size / longest;
  }
}

function within(time: number, longest: number): number {
  return longest === Number.POSITIVE_INFINITY ? longest : Math.floor(time * longest + ROUNDING);
}

/** Shares such as 1/3 add up to a little less than 1. */
const ROUNDING = 1e-6;
