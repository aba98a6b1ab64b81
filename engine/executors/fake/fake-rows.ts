import type { PackedBatch } from '../../packed-call/packed-batch.js';
import type { TokenMasks } from '../../packed-call/sampling-batch.js';

/** Takes the place of a hash, which is never below 0, if the row's logits are not finite. */
export const POISONED = -1;

/** Mixes a value into a 32-bit hash (multiplications and shifts of murmur3's finaliser). */
export function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The row of logits that belongs to a hash. */
export function logitsOf(hash: number, vocabSize: number): Float32Array {
  if (hash === POISONED) return new Float32Array(vocabSize).fill(Number.NaN);
  return Float32Array.from({ length: vocabSize }, (_, token) => mix(hash, token) / 2 ** 32);
}

/** Folds in changes made to a row of logits since it was handed out; -infinity is left to `isPossible`. */
export function hashChanges(hash: number, row: Float32Array): number {
  const before = logitsOf(hash, row.length);
  let changed = hash;
  for (const [token, logit] of row.entries()) {
    if (Number.isNaN(logit) || logit === Infinity) return POISONED;
    if (logit === before[token] || logit === -Infinity) continue;
    changed = mix(mix(changed, token), Math.round(logit * 2 ** 20));
  }
  return row.every((logit) => logit === -Infinity) ? POISONED : changed;
}

/** True if the row's mask lets a token be drawn. */
export function allowedBy(
  masks: TokenMasks | null,
  row: number,
  vocabSize: number,
): (token: number) => boolean {
  const mask = masks?.maskOfRow[row] ?? -1;
  if (masks === null || mask < 0) return () => true;
  const first = mask * Math.ceil(vocabSize / 32);
  return (token) => (masks.words[first + (token >> 5)]! & (1 << (token & 31))) !== 0;
}

/** Place of row t of T in its sequence. */
export function placeOf(batch: PackedBatch, sequence: number, t: number): number {
  return batch.contextLength[sequence]! - (batch.queryStart[sequence + 1]! - t);
}

/**
 * Content that a slot gets for row t of T, which has this place in its sequence: the token, or a hash above all tokens if
 * the request brought the embedding, the position is not the place, or there is an adapter, whose hash is given.
 */
export function contentOf(
  batch: PackedBatch,
  t: number,
  place: number,
  { vocabSize, promptRowWidth }: { vocabSize: number; promptRowWidth: number },
  adapter: number | null = null,
): number {
  const token = batch.tokenIds[t]!;
  const position = batch.positions[t]!;
  const hashed = (hash: number) => vocabSize + (hash % 2 ** 30);
  let content = token;
  if (token >= vocabSize) {
    const rows = batch.promptTables?.find(({ first, count }) => t >= first && t < first + count);
    const own = (token - vocabSize) * promptRowWidth;
    const row = rows?.table.subarray(own, own + promptRowWidth);
    if (row?.length !== promptRowWidth)
      throw new Error(`row ${t} has the token ${token}, which nothing embeds`);
    content = hashed(row.reduce((hash, value) => mix(hash, Math.round(value * 2 ** 16)), 0));
  }
  if (adapter !== null) content = hashed(mix(content, adapter));
  if (position !== place) content = hashed(mix(content, position));
  const { gridPositions: grids } = batch;
  if (!grids || (grids[2 * t] === position && grids[2 * t + 1] === position)) return content;
  return hashed(mix(mix(content, grids[2 * t]!), grids[2 * t + 1]!));
}
