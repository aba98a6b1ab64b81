import type { LlmRequest } from '../request/llm-request.js';

/** Most rows of a sequence that are kept, and of all sequences together as far as each keeps enough for its drafts. */
const MAX_ROWS = 256;
const MAX_ROWS_IN_ALL = 8192;

/** Number of rows that are kept of each sequence for a model's head; each is as wide as the model. */
export function headRows({ maxNumSequences, maxDraftLen }: HeadLimits): number {
  const shared = Math.min(MAX_ROWS, Math.floor(MAX_ROWS_IN_ALL / maxNumSequences));
  // What a step keeps of a draft that was right.
  return Math.max(shared, 2 * (maxDraftLen + 1));
}

interface HeadLimits {
  maxNumSequences: number;
  maxDraftLen: number;
}

/**
 * Rows of a request that a step of the model has kept: those of its places from `place` on, one after the
 * other.
 */
export interface KeptRows {
  readonly request: LlmRequest;
  readonly place: number;
  /** Index of the first of them among the step's rows of tokens. */
  readonly firstRow: number;
  readonly count: number;
}

/** Places [first, end) of a sequence whose rows are there. */
interface Span {
  rows: Float32Array;
  first: number;
  end: number;
}

/**
 * The latest rows of sequences that the model's head has not read yet. They are few, so a long prompt, or a sequence that had no draft for
 * a while, is read from its latest places on alone:
 *
 *   prompt     p0 p1 ... p3999 | g0          256 rows are kept: those of p3744 to p3999
 *   head       reads p3745 with the row of p3744, ..., g0 with that of p3999
 *
 * Of what was read only the last row stays, since the newest token may be read again.
 */
export class HiddenRows {
  readonly width: number;
  /** Most rows of a sequence. */
  readonly most: number;
  readonly #spans = new Map<bigint, Span>();

  /** @param most least 2 */
  constructor(width: number, most: number) {
    this.width = width;
    this.most = most;
  }

  /** Number of sequences that have rows. */
  get size(): number {
    return this.#spans.size;
  }

  /** Adds rows of a sequence [count x width], of which the first is that of `place`. Rows of other places before them are forgotten. */
  note(requestId: bigint, place: number, rows: Float32Array, count: number): void {
    if (count <= 0) return;
    const span = this.#spanOf(requestId);
    if (place !== span.end) span.first = place;
    const skipped = Math.max(0, count - this.most);
    for (let row = skipped; row < count; row++)
      span.rows.set(rows.subarray(row * this.width, (row + 1) * this.width), this.#at(place + row));
    span.end = place + count;
    span.first = Math.max(span.first, span.end - this.most);
  }

  /** First place that has a row; undefined: those before the newest token's are not there. */
  firstOf({ requestId, numTokens }: Pick<LlmRequest, 'requestId' | 'numTokens'>): number | undefined {
    const span = this.#spans.get(requestId);
    return span !== undefined && span.end === numTokens - 1 && span.first < span.end ? span.first : undefined;
  }

  /** The row of a place that has one. */
  rowOf(requestId: bigint, place: number): Float32Array {
    const span = this.#spans.get(requestId);
    if (span === undefined || place < span.first || place >= span.end)
      throw new Error(`Request ${requestId} has no row of place ${place}.`);
    return span.rows.subarray(this.#at(place), this.#at(place) + this.width);
  }

  /** Forgets rows of places before `place`, which were read. */
  forgetBefore(requestId: bigint, place: number): void {
    const span = this.#spans.get(requestId);
    if (span !== undefined) span.first = Math.max(span.first, Math.min(place, span.end - 1));
  }

  release(requestId: bigint): void {
    this.#spans.delete(requestId);
  }

  releaseAll(): void {
    this.#spans.clear();
  }

  #at(place: number): number {
    return (place % this.most) * this.width;
  }

  #spanOf(requestId: bigint): Span {
    let span = this.#spans.get(requestId);
    if (span === undefined) {
      span = { rows: new Float32Array(this.most * this.width), first: 0, end: -1 };
      this.#spans.set(requestId, span);
    }
    return span;
  }
}
