import type { PromptPositions } from '../sequences/prompt-positions.js';
import type { PromptTable } from '../sequences/request-spec.js';

/** Places [start, end) of a sequence, whose rows in the batch begin with `first`. */
interface RowSpan {
  start: number;
  end: number;
  first: number;
}

/** PackedBatch.gridPositions: written in iterations that compute pictures, for the rows of all requests. */
export class GridPositions {
  readonly #spans: (RowSpan & { positions: PromptPositions })[] = [];
  #memory = new Int32Array(0);
  #written: Int32Array | null = null;

  /** Positions in height and width of each token [T x 2]; null: those of all are the ones in time. */
  get written(): Int32Array | null {
    return this.#written;
  }

  clear(): void {
    this.#spans.length = 0;
    this.#written = null;
  }

  add(positions: PromptPositions, rows: RowSpan): void {
    this.#spans.push({ positions, ...rows });
  }

  /** @param times position in time of each token */
  write(times: Int32Array, numTokens: number): void {
    if (this.#spans.length === 0) return;
    if (this.#memory.length < 2 * times.length) this.#memory = new Int32Array(2 * times.length);
    const grids = this.#memory;
    for (let row = 0; row < numTokens; row++) grids[2 * row] = grids[2 * row + 1] = times[row]!;
    for (const { positions, start, end, first } of this.#spans) {
      for (let place = start; place < end; place++) {
        const at = 2 * (first + place - start);
        grids[at] = positions.at('height', place);
        grids[at + 1] = positions.at('width', place);
      }
    }
    this.#written = grids;
  }
}

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
