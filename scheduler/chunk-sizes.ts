import { shortestFirst } from './shortest-first.js';
import type { Chunking, SchedulableRequest } from './types.js';

/** Prompt tokens of a context that are still to be computed. */
export function contextLeft(request: SchedulableRequest): number {
  return request.promptLength - request.contextPosition;
}

/**
 * Context tokens of each request, in the order of the list, out of `capacity`: all that is left of each where all fit, else
 * what the policy gives.
 */
export function chunkSizes(
  contexts: readonly SchedulableRequest[],
  capacity: number,
  chunking: Readonly<Chunking>,
): number[] {
  const room = new ChunkRoom(capacity, chunking);
  if (room.holdsAll(contexts)) return contexts.map(contextLeft);
  switch (chunking.policy) {
    case 'SHORTEST_FIRST':
      return shortestFirst(contexts, room);
    case 'EQUAL_PROGRESS':
      return equalProgress(contexts, room);
    default:
      return contexts.map((request) => room.take(request));
  }
}

/** What an iteration still has for chunks: tokens, and the time of those that do not end their context. */
export class ChunkRoom {
  readonly #unit: number;
  readonly #maxContextLength: number;
  readonly #longestChunk: (request: SchedulableRequest) => number;
  #tokens: number;
  /** Share of the time that is left for chunks that are cut: see Chunking.longestChunk. */
  #time = 1;

  constructor(capacity: number, { unit, maxContextLength, longestChunk }: Readonly<Chunking>) {
    this.#tokens = capacity;
    this.#unit = unit;
    this.#maxContextLength = maxContextLength ?? Number.POSITIVE_INFINITY;
    this.#longestChunk = longestChunk ?? (() => Number.POSITIVE_INFINITY);
  }

  /** Whether each of them can run to its end in this iteration, with the drafts that ride on them. */
  holdsAll(contexts: readonly SchedulableRequest[]): boolean {
    let wanted = 0;
    for (const request of contexts) {
      const whole = contextLeft(request) + request.draftLength;
      if (whole > this.#maxContextLength || contextLeft(request) > this.#longestChunk(request)) return false;
      wanted += whole;
    }
    return wanted <= this.#tokens;
  }

  /** Whether the context can run to its end with what is left. */
  holdsWhole(request: SchedulableRequest): boolean {
    const wanted = contextLeft(request);
    return wanted <= Math.min(this.#tokens, this.#maxContextLength, this.#longestChunk(request));
  }

  /** As much as there is, out of the tokens and, where the chunk is cut, out of the time. */
  take(request: SchedulableRequest): number {
    const wanted = contextLeft(request);
    if (this.holdsWhole(request)) {
      this.#tokens -= wanted;
      return wanted;
    }
    const longest = this.#longestChunk(request);
    const most = Math.min(wanted, this.#tokens, this.#maxContextLength, this.#inTime(longest));
    const size = most - (most % Math.min(this.#unit, longest));
    this.#spend(size, longest);
    return size;
  }

  /** One unit, or the rest, for a context that has `taken` so many in this iteration; 0 where that is too much. */
  takeUnit(request: SchedulableRequest, taken: number): number {
    const longest = this.#longestChunk(request);
    const wanted = contextLeft(request);
    const more = Math.min(this.#unit, longest, wanted - taken);
    const isCut = wanted > longest;
    if (more > this.#tokens || taken + more > this.#maxContextLength) return 0;
    if (isCut && more > this.#inTime(longest)) return 0;
    if (isCut) this.#spend(more, longest);
    else this.#tokens -= more;
    return more;
  }

  #inTime(longest: number): number {
    return longest === Number.POSITIVE_INFINITY ? longest : Math.floor(this.#time * longest + ROUNDING);
  }

  #spend(size: number, longest: number): void {
    this.#tokens -= size;
    this.#time -= size / longest;
  }
}

/** Shares such as 1/3 add up to a little less than 1. */
const ROUNDING = 1e-6;

/** Round robin, one unit (or the rest) more each; ends after a pass in which nobody could take more. */
function equalProgress(contexts: readonly SchedulableRequest[], room: ChunkRoom): number[] {
  const sizes = contexts.map(() => 0);
  for (let progress = true; progress; ) {
    progress = false;
    for (const [index, request] of contexts.entries()) {
      const more = room.takeUnit(request, sizes[index]!);
      sizes[index]! += more;
      progress ||= more > 0;
    }
  }
  return sizes;
}
