import type { ModelOptions } from '../../serving/load-model.js';

/** Tokens of the KV cache of a model inside another program, over all requests: 64 requests of 512 tokens, say. */
export const EMBEDDED_KV_CACHE_TOKENS = 32_768;

/**
 * The options with a KV cache that leaves the program its memory: a server takes nearly all that is free. Whoever says how large the cache
 * is to be, or how long the context, has that.
 */
export function withEmbeddedCache(options: ModelOptions): ModelOptions {
  if (options.kvCacheTokens !== undefined || options.memoryFraction !== undefined) return options;
  const kvCacheTokens = Math.max(EMBEDDED_KV_CACHE_TOKENS, options.maxContextTokens ?? 0);
  return { ...options, kvCacheTokens };
}
