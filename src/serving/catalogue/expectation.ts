import type { ModelMeasure } from '../on-demand/model-measure.js';
import { memoryShare } from '../on-demand/residency.js';

/** What a model can be expected to do on this machine. */
export interface Expectation {
  /** True where the weights, and a KV cache for a conversation, have room in the memory for models. */
  fits: boolean;
  /** Tokens for which its KV cache has room, at most those of its longest sequence. */
  cachedTokens: number;
  /** Tokens a second of one sequence, at most; null: it is not known how fast memory is read. */
  tokensPerSecond: number | null;
}

/** Tokens of a conversation, for which there has to be room. */
const MIN_TOKENS = 2048;

/**
 * @param memoryBytes bytes of all models that are loaded on demand
 * @param bytesPerSecond bytes that memory gives to the threads that compute; null: not measured
 */
export function expectationOf(
  { weightBytes, readBytes, cacheBytesPerToken, contextTokens }: Omit<ModelMeasure, 'generates'>,
  memoryBytes: number,
  bytesPerSecond: number | null,
): Expectation {
  const share = memoryShare(weightBytes, cacheBytesPerToken * contextTokens, memoryBytes);
  const room = cacheBytesPerToken === 0 ? contextTokens : (share?.cacheBytes ?? 0) / cacheBytesPerToken;
  const cachedTokens = share === null ? 0 : Math.floor(Math.min(contextTokens, room));
  return {
    fits: share !== null && cachedTokens >= Math.min(MIN_TOKENS, contextTokens),
    cachedTokens,
    tokensPerSecond: bytesPerSecond === null || readBytes === 0 ? null : bytesPerSecond / readBytes,
  };
}
