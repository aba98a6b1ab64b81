import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';

/** Shape of an engine's cache: the size of its blocks, and the window in which they take turns, if there is one. */
export interface CacheShape {
  tokensPerBlock: number;
  window: AttentionWindow | null;
}

/**
 * Places of a sequence, counted from 0, that were in the cache before a step and that rows of the step attend to:
 *
 *   0 .. sinks | not seen | recent .. end | the step's own rows
 */
export interface PlacesBefore {
  sinks: number;
  recent: number;
  end: number;
}

/**
 * The places for layers without a window of their own, or for those with one. Rows of the step may write over some of these
 * places (see `staysInCache`), so attention must read them first.
 */
export function placesBefore(
  batch: PackedBatch,
  sequence: number,
  window: AttentionWindow | null,
  layerWindow?: number,
): PlacesBefore {
  const rows = batch.queryStart[sequence + 1]! - batch.queryStart[sequence]!;
  const end = batch.contextLength[sequence]! - rows;
  const recent = Math.max(0, end - recentTokens(window, layerWindow) + 1);
  return { sinks: Math.min(window?.sinkTokenLength ?? 0, recent), recent, end };
}

/** True if the row at place `from` of its sequence attends to place `place`, which is not behind it. */
export function isAttendedTo(
  place: number,
  from: number,
  window: AttentionWindow | null,
  layerWindow?: number,
): boolean {
  return place < (window?.sinkTokenLength ?? 0) || place > from - recentTokens(window, layerWindow);
}

/** Number of tokens that a row looks back to, itself included, not counting sinks. */
function recentTokens(window: AttentionWindow | null, layerWindow = Infinity): number {
  const recent = window === null ? Infinity : window.maxAttentionWindow - window.sinkTokenLength;
  return Math.min(recent, layerWindow);
}

/** Slot of the key and value of a place in a sequence: block * tokensPerBlock + offset. */
export function slotOf(batch: PackedBatch, sequence: number, place: number, shape: CacheShape): number {
  const { tokensPerBlock, window } = shape;
  const block = Math.floor(place / tokensPerBlock);
  const entry = window?.entryOf(block) ?? block;
  return batch.blockTables[sequence * batch.maxBlocks + entry]! * tokensPerBlock + (place % tokensPerBlock);
}

/**
 * True if the key and value that a row of a step writes are still in the cache at the step's end. With a window a later
 * row of the same step may take their slot; in each slot exactly one row stays.
 *
 * @param length of the sequence after the step
 */
export function staysInCache(place: number, length: number, { tokensPerBlock, window }: CacheShape): boolean {
  if (window === null || Math.floor(place / tokensPerBlock) < window.sinkBlocks) return true;
  return place + window.ringBlocks * tokensPerBlock >= length;
}
