import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { PackedBatch } from '../../batch/packed-batch.js';

/** How an engine's cache is cut: blocks of so many tokens, which take turns where there is a window. */
export interface CacheShape {
  tokensPerBlock: number;
  window: AttentionWindow | null;
}

/**
 * Places of a sequence, counted from 0, that lay in the cache before a step and that rows of the step attend to:
 *
 *   0 .. sinks | not seen | recent .. end | the step's own rows
 */
export interface PlacesBefore {
  sinks: number;
  recent: number;
  end: number;
}

/**
 * The places of the layers without a window of their own, or of those with one. Rows of the step may write over some of these places
 * (see `staysInCache`): whoever attends reads them first.
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

/** Whether the row at place `from` of its sequence attends to place `place`, which is not behind it. */
export function isAttendedTo(
  place: number,
  from: number,
  window: AttentionWindow | null,
  layerWindow?: number,
): boolean {
  return place < (window?.sinkTokenLength ?? 0) || place > from - recentTokens(window, layerWindow);
}

/** How many tokens a row looks back to, itself included, beside the sinks. */
function recentTokens(window: AttentionWindow | null, layerWindow = Infinity): number {
  const recent = window === null ? Infinity : window.maxAttentionWindow - window.sinkTokenLength;
  return Math.min(recent, layerWindow);
}

/** Where the key and the value of a place of a sequence lie: block * tokensPerBlock + offset. */
export function slotOf(batch: PackedBatch, sequence: number, place: number, shape: CacheShape): number {
  const { tokensPerBlock, window } = shape;
  const block = Math.floor(place / tokensPerBlock);
  const entry = window?.entryOf(block) ?? block;
  return batch.blockTables[sequence * batch.maxBlocks + entry]! * tokensPerBlock + (place % tokensPerBlock);
}

/**
 * Whether what a row of a step writes into the cache is still there at the step's end. With a window a later row of the
 * same step may take its slot; of each slot exactly one row stays.
 *
 * @param length of the sequence after the step
 */
export function staysInCache(place: number, length: number, { tokensPerBlock, window }: CacheShape): boolean {
  if (window === null || Math.floor(place / tokensPerBlock) < window.sinkBlocks) return true;
  return place + window.ringBlocks * tokensPerBlock >= length;
}
