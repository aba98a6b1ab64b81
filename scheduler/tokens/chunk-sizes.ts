import { ChunkRoom, contextLeft } from './chunk-room.js';
import { shortestFirst } from './shortest-first.js';
import type { Chunking, SchedulableRequest } from './types.js';

/**
 * Context tokens of each request, in the order of the list, out of the `most` that the iteration has left: all remaining tokens of each if
 * they all fit, else as many as the policy gives.
 */
export function chunkSizes(
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
