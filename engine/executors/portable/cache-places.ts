import type { AttentionWindow } from '../../../kvcache/attention-window.js';
import type { PackedBatch } from '../../packed-call/packed-batch.js';

/** Shape of an engine's cache: the size of its blocks, and the window in which they take turns, if there is one. */
export interface CacheShape {
  tokensPerBlock: number;
  window: AttentionWindow | null;
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
