import { type Lookup, PLACES_OF_TOKEN } from '../../../network/plan.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';

export interface EmbeddingShape {
  vocabSize: number;
  /** Number of values in a row. */
  width: number;
}

/**
 * output[t] = table[tokenIds[t]] * scale, [numTokens x width]; rows of a prompt's own table are left to writePromptRows.
 *
 * @param table [vocabSize x width]
 */
export function writeEmbeddingRows(
  batch: PackedBatch,
  table: Float32Array,
  { vocabSize, width, scale = 1 }: EmbeddingShape & { scale?: number | undefined },
  output: Float32Array,
): void {
  const factor = Math.fround(scale);
  for (let t = 0; t < batch.numTokens; t++) {
    const token = batch.tokenIds[t]!;
    if (token >= vocabSize) continue;
    output.set(table.subarray(token * width, (token + 1) * width), t * width);
    if (factor === 1) continue;
    for (let i = t * width; i < (t + 1) * width; i++) output[i]! *= factor;
  }
}

/** The row of a table of addEmbedding that token t looks up. */
export function rowsLookedUp(
  batch: PackedBatch,
  by: Exclude<Lookup, 'places'>,
  vocabSize: number,
): (t: number) => number {
  if (by === 'tokenIds') return (t) => (batch.tokenIds[t]! < vocabSize ? batch.tokenIds[t]! : 0);
  const ids = by === 'positions' ? batch.positions : batch.tokenTypes!;
  return (t) => ids[t]!;
}

/** output[t] += the sum of the rows of a table that token t names, each times its share and summed in their order. */
export function addPlacedRows(
  { places, placeShares, numTokens }: PackedBatch,
  table: Float32Array,
  { width, scale }: { width: number; scale: number },
  output: Float32Array,
): void {
  const sum = new Float32Array(width);
  for (let t = 0; t < numTokens; t++) {
    sum.fill(0);
    for (let at = t * PLACES_OF_TOKEN; at < (t + 1) * PLACES_OF_TOKEN; at++) {
      const begin = places![at]! * width;
      const share = Math.fround(placeShares![at]! * Math.fround(scale));
      for (let i = 0; i < width; i++) sum[i]! += Math.fround(table[begin + i]! * share);
    }
    for (let i = 0; i < width; i++) output[t * width + i]! += sum[i]!;
  }
}

/** Columns of a prompt's own rows, which are `stride` numbers each. */
export interface PromptRowPart {
  vocabSize: number;
  stride: number;
  first: number;
  width: number;
}

/** Sets output[t] to the beginning of the row that token t names in its request's own table, if it names one, without scaling it. */
export function writePromptRows(
  batch: PackedBatch,
  part: Omit<PromptRowPart, 'first'>,
  output: Float32Array,
): void {
  forEachPromptRow(batch, { ...part, first: 0 }, (t, row) => output.set(row, t * part.width));
}

/** Adds such a row's columns to output[t]. */
export function addPromptRows(batch: PackedBatch, part: PromptRowPart, output: Float32Array): void {
  const { width } = part;
  forEachPromptRow(batch, part, (t, row) => {
    for (let i = 0; i < width; i++) output[t * width + i]! += row[i]!;
  });
}

/** Calls `each` for each row of T whose id names one that the request brought, with the columns of that row. */
export function forEachPromptRow(
  batch: PackedBatch,
  { vocabSize, stride, first: column, width }: PromptRowPart,
  each: (t: number, row: Float32Array) => void,
): void {
  for (const { first, count, table } of batch.promptTables ?? []) {
    for (let t = first; t < first + count; t++) {
      const own = batch.tokenIds[t]! - vocabSize;
      const begin = own * stride + column;
      if (own >= 0) each(t, table.subarray(begin, begin + width));
    }
  }
}
