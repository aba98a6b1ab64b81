import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import { CHUNK_MS } from '../../callbacks/options/words.js';

/** What a `maxChunkMs` comes to on an executor; one of a user's own counts as native. */
export function chunkMsOn(executor: string, maxChunkMs: number | 'auto' | undefined): number | undefined {
  if (maxChunkMs !== 'auto') return maxChunkMs;
  return Object.hasOwn(CHUNK_MS, executor) ? CHUNK_MS[executor as ExecutorName] : CHUNK_MS.native;
}
