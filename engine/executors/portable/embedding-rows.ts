import type { Lookup } from '../../../network/plan.js';
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
export function rowsLookedUp(batch: PackedBatch, by: Lookup, vocabSize: number): (t: number) => number {
  if (by === 'tokenIds') return (t) => (batch.tokenIds[t]! < vocabSize ? batch.tokenIds[t]! : 0);
  const ids = by === 'positions' ? batch.positions : batch.tokenTypes!;
  return (t) => ids[t]!;
}

/** Sets output[t] to the row of its request's own table, if token t names one, without scaling it. */
export function writePromptRows(batch: PackedBatch, shape: EmbeddingShape, output: Float32Array): void {
  forEachPromptRow(batch, shape, (t, row) => output.set(row, t * shape.width));
}

/** Calls `each` for each row of T whose id names an embedding that the request brought, with that embedding. */
export function forEachPromptRow(
  batch: PackedBatch,
  { vocabSize, width }: EmbeddingShape,
  each: (t: number, row: Float32Array) => void,
): void {
  for (const { first, count, table } of batch.promptTables ?? []) {
    for (let t = first; t < first + count; t++) {
      const own = batch.tokenIds[t]! - vocabSize;
      if (own >= 0) each(t, table.subarray(own * width, (own + 1) * width));
    }
  }
}
