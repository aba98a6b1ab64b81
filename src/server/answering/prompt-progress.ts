import type { TextPiece } from '../../generation/text-generation.js';

/**
 * llama.cpp's progress of a prompt of `total` tokens, as a chunk field next to its choices; '' where the
 * piece has none. processed / total is the share done, (processed - cache) / (total - cache) the share
 * computed of what needed computing.
 */
export function progressField({ contextProgress: progress }: TextPiece, total: number): string {
  if (progress === undefined) return '';
  const { done: processed, cached: cache, ms: time_ms } = progress;
  return `,"prompt_progress":${JSON.stringify({ total, cache, processed, time_ms })}`;
}

/** True where a piece only reports progress on the prompt. */
export function isOnlyProgress({ contextProgress, tokens, finishReason }: TextPiece): boolean {
  return contextProgress !== undefined && tokens.length === 0 && finishReason === null;
}
