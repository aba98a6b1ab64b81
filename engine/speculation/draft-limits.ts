import type { AttentionWindow } from '../../kvcache/attention-window.js';

/**
 * Most draft tokens that a sequence of `length` tokens, the newest of them not in the cache, may have in a window. The
 * draft may be rejected, so it must not write over a token that is attended to without it:
 *
 *   ring of 12 slots, window 10, no sinks, length 21: the newest token is at 20 and attends to 11 .. 20
 *
 *   a draft at 21 and 22     takes the slots of 9 and 10, which nobody sees any more
 *   a third token, at 23     would take that of 11
 *
 * So a draft may have as many tokens as the ring has slots more than the window, which is few, and none if a window is
 * whole blocks. As long as a sequence writes over nothing at all there is no such limit.
 */
export function longestDraftInWindow(
  window: AttentionWindow | null,
  length: number,
  tokensPerBlock: number,
): number {
  if (window === null) return Number.POSITIVE_INFINITY;
  const ring = window.ringBlocks * tokensPerBlock;
  const unbroken = window.maxBlocks * tokensPerBlock;
  const seen = window.maxAttentionWindow - window.sinkTokenLength;
  return Math.max(unbroken - length, ring - seen);
}
