import type { TextPiece } from '../../generation/text-generation.js';

/**
 * llama.cpp's progress of a prompt of `total` tokens, as a field of a chunk beside its choices; '' where the piece tells none.
 * processed / total is what is done, (processed - cache) / (total - cache) what was computed of what had to be.
 */
export function progressField({ contextProgress: progress }: TextPiece, total: number): string {
  if (progress === undefined) return '';
  const { done: processed, cached: cache, ms: time_ms } = progress;
  return `,"prompt_progress":${JSON.stringify({ total, cache, processed, time_ms })}`;
}

/** True where a piece tells how far the prompt is and nothing else. */
export function isOnlyProgress({ contextProgress, tokens, finishReason }: TextPiece): boolean {
  return contextProgress !== undefined && tokens.length === 0 && finishReason === null;
}
