import type { SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import { TOKENS_OF_A_NAME } from '../../kvcache/prefix-sharing.js';
import type { PromptTable } from './request-spec.js';

/** What the KV cache needs to know of a prompt's pictures. */
export type CachedPictures = Pick<SharedPrefix, 'spans' | 'forksAt'>;

/**
 * How the pictures of a prompt are found in the cache. Where their tokens attend to all of them, whole or not at all; else also in part, but
 * never with fewer ids than say which picture it is:
 *
 *   prompt      |text|pppp|pppp|pppp|pp..|     a picture p, tokensPerBlock 4; its last block waits for what follows
 *   found       |####|####|####|####|    .     12 of its ids: the last 2 of its tokens are computed, and what follows
 *   found       |####|##  |                    2 of its ids: might be another one's, and nothing of it is taken
 */
export function cachedPictures(table: PromptTable | null): CachedPictures {
  const pictures = table?.images ?? [];
  const last = pictures.at(-1);
  if (last === undefined) return {};
  const least = table?.bothWays ? Number.POSITIVE_INFINITY : TOKENS_OF_A_NAME;
  const spans = pictures.map(({ start, end }) => ({ start, end: Math.min(end, start + least) }));
  return { spans, forksAt: last.end };
}
