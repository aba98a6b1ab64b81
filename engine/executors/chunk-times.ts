import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import { CHUNK_MS } from '../../callbacks/options/words.js';

/** Milliseconds that a `maxChunkMs` means on an executor; a user's own executor counts as native. */
export function chunkMsOn(executor: string, maxChunkMs: number | 'auto' | undefined): number | undefined {
  if (maxChunkMs !== 'auto') return maxChunkMs;
  return Object.hasOwn(CHUNK_MS, executor) ? CHUNK_MS[executor as ExecutorName] : CHUNK_MS.native;
}
