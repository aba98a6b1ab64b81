import type { Chunking, SchedulableRequest } from './types.js';
import { uncutLength } from './whole-spans.js';

/** Prompt tokens of a context that are still to be computed. */
export function contextLeft(request: SchedulableRequest): number {
  return request.promptLength - request.contextPosition;
}

/** Limit on the time of all chunks of an iteration together, as a multiple of the time that cut chunks may take. */
const MAX_TOGETHER = 4;

/**
 * Room that an iteration still has for chunks: tokens, and time. All chunks that are cut share the time of one chunk.
 * Chunks that end their contexts may together take MAX_TOGETHER times as long: each of them gives a request its first
 * token, and what waits for them is another request's next token. A span that no chunk may cut is taken
 * whole: beyond the time and the chunks' own limits only as the first of an iteration, and beyond
 * maxNumTokens never.
 */
export class ChunkRoom {
  readonly #unit: number;
  readonly #maxContextLength: number;
  readonly #longestChunk: (request: SchedulableRequest) => number;
  #tokens: number;
  /** Tokens of the iteration that are left, whatever its time. */
  #most: number;
  /** Share of the time that is left for chunks that are cut: see Chunking.longestChunk. */
  #time = 1;
  /** Time left for all chunks, in the same unit as #time. */
  #together = MAX_TOGETHER;
  #isUntouched = true;

  /** @param most tokens that the iteration has left for contexts */
  constructor(most: number, { unit, maxContextLength, maxContextTokens, longestChunk }: Readonly<Chunking>) {
    this.#most = most;
    this.#tokens = Math.min(most, maxContextTokens ?? Number.POSITIVE_INFINITY);
    this.#unit = unit;
    this.#maxContextLength = maxContextLength ?? Number.POSITIVE_INFINITY;
    this.#longestChunk = longestChunk ?? (() => Number.POSITIVE_INFINITY);
  }

  /** True if all contexts can run to their ends in this iteration, with the drafts that ride on them. */
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

  /** True if the context can run to its end with the tokens and the time that are left. */
  holdsWhole(request: SchedulableRequest): boolean {
    const wanted = contextLeft(request);
    const longest = this.#longestChunk(request);
    const inTime = Math.min(longest, within(this.#together, longest));
    return wanted <= Math.min(this.#tokens, this.#maxContextLength, inTime);
  }

  /**
   * Takes as many tokens as possible for a request and returns their number. They come out of the tokens left and,
   * where the chunk is cut, out of the time left.
   */
  take(request: SchedulableRequest): number {
    const wanted = contextLeft(request);
    const longest = this.#longestChunk(request);
    if (this.holdsWhole(request)) {
      this.#spend(wanted, longest, false);
      return wanted;
    }
    const most = Math.min(wanted, this.#tokens, this.#maxContextLength, this.#inTime(longest));
    const size = uncutLength(request, 0, most - (most % Math.min(this.#unit, longest)));
    // Only a whole span is longer than what there is room for.
    if (size > most && !this.#takesBeyond(size)) return 0;
    this.#spend(size, longest, true);
    return size;
  }

  /**
   * Takes one more unit, or the rest, for a context that has `taken` tokens in this iteration; returns 0 if that does
   * not fit.
   */
  takeUnit(request: SchedulableRequest, taken: number): number {
    const longest = this.#longestChunk(request);
    const wanted = contextLeft(request);
    const more = uncutLength(request, taken, Math.min(this.#unit, longest, wanted - taken));
    const isCut = wanted > longest;
    const inTime = isCut ? this.#inTime(longest) : within(this.#together, longest);
    if (more > Math.min(this.#tokens, this.#maxContextLength - taken, inTime) && !this.#takesBeyond(more))
      return 0;
    this.#spend(more, longest, isCut);
    return more;
  }

  /** True if a span may take more than the time and the chunks' limits leave: nothing else has been taken before it. */
  #takesBeyond(size: number): boolean {
    return this.#isUntouched && size <= this.#most;
  }

  /** Tokens of a cut chunk that fit into the time left, where a chunk of `longest` tokens would take all of it. */
  #inTime(longest: number): number {
    return within(Math.min(this.#time, this.#together), longest);
  }

  #spend(size: number, longest: number, isCut: boolean): void {
    this.#isUntouched &&= size === 0;
    this.#tokens = Math.max(0, this.#tokens - size);
    this.#most -= size;
    this.#together -= size / longest;
    if (isCut) this.#time -= size / longest;
  }
}

function within(time: number, longest: number): number {
  // A span that was taken whole may have taken more time than there was.
  return longest === Number.POSITIVE_INFINITY ? longest : Math.max(0, Math.floor(time * longest + ROUNDING));
}

/** Shares such as 1/3 add up to a little less than 1. */
const ROUNDING = 1e-6;
