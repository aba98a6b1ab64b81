import type { ChunkRoom } from './chunk-room.js';
import type { SchedulableRequest } from './types.js';

/** Number of iterations in a row in which the first of the list lets shorter contexts pass before it. */
export const PATIENCE = 3;

/**
 * SHORTEST_FIRST: contexts that can end in this iteration go first, the shortest before all. Long contexts are cut to what
 * is left, and only in iterations in which no context ends. But the first of the list waits for at most PATIENCE iterations
 * in a row; then it takes its chunk before all others.
 *
 *   20 tokens an iteration, unit 8; A has 100 to go; B, C and D come with 6, 3 and 15, then one with 4 in each iteration
 *     iteration   1    2    3    4    5    6    7    8    9
 *     arrivals    A   B C   D         E    F    G    H    I
 *     A          16    -    -   16    -    -    -   16    -      three times in a row the others pass it, not four times
 *     others          6 3  15         4    4    4    4    4
 *
 * So a short prompt waits for the iteration that runs, and then runs without a long one, unless it is the
 * long one's turn. And each context ends: the first of the list has a chunk at least every PATIENCE + 1
 * iterations, as large as an iteration takes, whatever comes; when it is through, the next is the first. Of
 * several long contexts the one with the least to go comes first, so that they end one after the other.
 *
 * Only equals pass one another: requests that stand side by side in the list with the same priority. A higher priority goes
 * first, however long its context is. A lower one gets what is left; the first request of that priority, too, is put off by
 * contexts that end for at most PATIENCE iterations.
 */
export function shortestFirst(contexts: readonly SchedulableRequest[], room: ChunkRoom): number[] {
  const sizes = new Map<SchedulableRequest, number>();
  let someEnd = false;
  for (const equals of groupsOfEquals(contexts)) {
    const [first] = equals as [SchedulableRequest];
    const shortest = [...equals].sort((a, b) => left(a) - left(b));
    if ((first.passedOver ?? 0) >= PATIENCE) {
      sizes.set(first, room.take(first));
      if (sizes.get(first) === left(first)) someEnd = true;
    }
    for (const request of shortest) {
      if (sizes.has(request) || !room.holdsWhole(request)) continue;
      sizes.set(request, room.take(request));
      someEnd = true;
    }
    if (someEnd) continue;
    for (const request of shortest) if (!sizes.has(request)) sizes.set(request, room.take(request));
  }
  return contexts.map((request) => sizes.get(request) ?? 0);
}

function left({ promptLength, contextPosition }: SchedulableRequest): number {
  return promptLength - contextPosition;
}

/** Cuts the list wherever the priority changes. */
function groupsOfEquals(contexts: readonly SchedulableRequest[]): SchedulableRequest[][] {
  const groups: SchedulableRequest[][] = [];
  for (const [index, request] of contexts.entries()) {
    if (index > 0 && request.priority === contexts[index - 1]!.priority) groups.at(-1)!.push(request);
    else groups.push([request]);
  }
  return groups;
}
