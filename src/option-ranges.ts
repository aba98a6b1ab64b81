import type { Range } from '../callbacks/sampling-params.js';
import type { ChunkingPolicy } from '../scheduler/types.js';

/** The greatest whole number that the engine counts with. */
export const MAX_COUNT = 2 ** 31 - 1;

/** Tokens that a KV cache block may have: the kernels walk the cache in steps that such blocks fill. */
export const TOKENS_PER_BLOCK: readonly number[] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/** With chunked context, where nothing else is asked for: one long prompt must not keep all others waiting. */
export const DEFAULT_CHUNKING_POLICY: ChunkingPolicy = 'SHORTEST_FIRST';

/** "a whole number from 1 to 1024"; without the upper end where that is only as far as numbers go. */
export function rangeText({ min, max, integer }: Range): string {
  const kind = integer ? 'a whole number' : 'a number';
  return max === MAX_COUNT ? `${kind} of at least ${min}` : `${kind} from ${min} to ${max}`;
}
