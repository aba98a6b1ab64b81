import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import { CHUNK_MS } from '../../callbacks/options/words.js';
import type { ChunkMs } from '../../scheduler/tokens/types.js';

/** What a `maxChunkMs` means on an executor; undefined: no bound. A user's own executor counts as native. */
export function chunkMsOn(executor: string, maxChunkMs: number | 'auto' | undefined): ChunkMs | undefined {
  if (maxChunkMs === undefined) return undefined;
  if (maxChunkMs !== 'auto') return { least: maxChunkMs, most: maxChunkMs };
  return Object.hasOwn(CHUNK_MS, executor) ? CHUNK_MS[executor as ExecutorName] : CHUNK_MS.native;
}
