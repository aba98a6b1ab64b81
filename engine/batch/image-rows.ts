import type { PromptTable } from '../sequences/request-spec.js';

/**
 * Replaces the ids of pictures by those that name their rows in the prompt's table: in a request an id spells what the picture is, so that
 * caches find it, and an executor looks for row i under the id firstId + i.
 *
 *   request   a  #7f3  #0c1  b  #7f3  #0c1  c       one picture twice, 2 tokens each
 *   batch     a  V+0   V+1   b  V+2   V+3   c
 *
 * @param ids ids of the places from `start` on, which are changed
 */
export function nameImageRows({ firstId, images }: PromptTable, ids: Int32Array, start: number): void {
  if (images === null) return;
  let row = 0;
  for (const span of images) {
    const first = Math.max(span.start, start);
    const end = Math.min(span.end, start + ids.length);
    for (let place = first; place < end; place++) ids[place - start] = firstId + row + place - span.start;
    row += span.end - span.start;
  }
}
