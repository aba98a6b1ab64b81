import { ChunkRoom, contextLeft } from './chunk-room.js';
import { shortestFirst } from './shortest-first.js';
import type { Chunking, MicroBatchLimits, SchedulableRequest, ScheduledChunk } from './types.js';

/** Turns requests that have capacity into the chunks of an iteration. */
export type MicroBatchScheduler = <R extends SchedulableRequest>(
  requests: readonly R[],
  limits: Readonly<MicroBatchLimits>,
) => ScheduledChunk<R>[];

/**
 * Decides which requests with capacity run in this iteration, and how many tokens each of them brings.
 *
 * The list is walked in order. The walk stops at the first request that would exceed maxNumTokens, and once maxBatchSize requests
 * are taken (a request with beams counts as one). It also stops at the first request with which there would be more than
 * maxSequences sequences (here a request counts with all its beams).
 *
 *   generation                  beamWidth + draft tokens
 *   context, no chunking        the whole prompt + draft tokens
 *   context with chunking       taken without counting its tokens; sized after the walk
 *
 * With chunking, generation therefore goes first: the walk gives every generating request its tokens, and the
 * contexts share what is left of maxNumTokens, or maxContextTokens where that is less. If all of them fit as they are (none longer than maxContextLength,
 * their sum, drafts included, within what is left), each runs to its end. If not, the policy sizes the chunks:
 *
 *   left 20, unit 8, contexts with 30, 6 and 3 tokens to go
 *     FIRST_COME_FIRST_SERVED   16  -  3     20 cut down to 16; 4 left: 6 would be cut to 0, the 3 fit whole
 *     EQUAL_PROGRESS             8  6  3     one unit (or the rest) each, in turns; a second 8 would exceed 20
 *     SHORTEST_FIRST             -  6  3     what can end does; the 30 have their turn at the latest after 3 iterations
 *
 * A context that gets no token is not scheduled, though it took its place in the walk's maxBatchSize. Every chunk
 * but a context's last is a multiple of the unit, or ends where a span begins or ends that may not be cut (wholeSpans). Where chunks are cut, a draft that rides on a last chunk may use
 * only tokens that the chunks leave over.
 */
export function scheduleMicroBatch<R extends SchedulableRequest>(
  requests: readonly R[],
  limits: Readonly<MicroBatchLimits>,
): ScheduledChunk<R>[] {
  const contexts: R[] = [];
  const generation: ScheduledChunk<R>[] = [];
  let tokens = 0;
  let sequences = 0;
  for (const request of requests) {
    if (contexts.length + generation.length >= limits.maxBatchSize) break;
    const cost = tokensInWalk(request, limits);
    if (tokens + cost > limits.maxNumTokens) break;
    tokens += cost;
    sequences += request.beamWidth;
    if (sequences > (limits.maxSequences ?? Number.POSITIVE_INFINITY)) break;
    if (request.phase === 'context') contexts.push(request);
    else generation.push({ request, contextTokens: 0 });
  }
  const sizes = limits.chunking
    ? chunkSizes(contexts, limits.maxNumTokens - tokens, limits.chunking)
    : contexts.map(contextLeft);
  const chunks: ScheduledChunk<R>[] = [];
  for (const [index, request] of contexts.entries()) {
    if (sizes[index]! > 0) chunks.push({ request, contextTokens: sizes[index]! });
  }
  return chunks.concat(generation);
}

/**
 * Length of the longest context that can run at all, in one piece or in chunks. Without chunking, or where not even one
 * unit fits into an iteration, it is what one iteration takes; otherwise there is no limit.
 */
export function longestContext(limits: Readonly<MicroBatchLimits>, draftLength: number): number {
  const { maxNumTokens, chunking } = limits;
  if (!chunking) return maxNumTokens - draftLength;
  const longestChunk = Math.min(maxNumTokens, chunking.maxContextLength ?? maxNumTokens);
  return longestChunk >= chunking.unit ? Number.POSITIVE_INFINITY : longestChunk;
}

function tokensInWalk(request: SchedulableRequest, limits: Readonly<MicroBatchLimits>): number {
  if (request.phase === 'generation') return request.beamWidth + request.draftLength;
  return limits.chunking ? 0 : contextLeft(request) + request.draftLength;
}

/**
 * Context tokens of each request, in the order of the list, out of the `most` that the iteration has left: all remaining tokens of each if
 * they all fit, else as many as the policy gives.
 */
function chunkSizes(
  contexts: readonly SchedulableRequest[],
  most: number,
  chunking: Readonly<Chunking>,
): number[] {
  const room = new ChunkRoom(most, chunking);
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

/**
 * Goes round the contexts and gives each one more unit (or the rest); ends after a pass in which none could take more.
 */
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
