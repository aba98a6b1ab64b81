import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';

/**
 * Places of a sequence, counted from 0, that were in the cache before a step and that rows of the step attend to:
 *
 *   0 .. sinks | not seen | recent .. end | the step's own rows
 */
interface PlacesBefore {
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

/** True if the row at place `from` of its sequence attends to place `place`, which is not after it. */
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
