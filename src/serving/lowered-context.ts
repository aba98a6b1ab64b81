import type { Engine } from '../../engine/building/engine.js';
import type { ModelOptions } from './model-options.js';

type ContextOptions = Pick<ModelOptions, 'kvCacheTokens' | 'maxContextTokens' | 'attentionWindowTokens'>;

/** A token of the prompt and one of the answer. */
const MIN_CONTEXT = 2;

/**
 * Tokens of the context where the KV cache was given fewer than the model's context has; null: it was not, or a length of the
 * context was asked for too. With an attention window a sequence of any length fits.
 */
export function loweredContext(
  options: ContextOptions,
  { manifest }: Pick<Engine, 'manifest'>,
): number | null {
  const { kvCacheTokens, maxContextTokens, attentionWindowTokens } = options;
  if (kvCacheTokens === undefined || maxContextTokens !== undefined) return null;
  if (attentionWindowTokens !== undefined || manifest.config.slidingWindow !== null) return null;
  return kvCacheTokens >= MIN_CONTEXT && kvCacheTokens < manifest.maxSeqLen ? kvCacheTokens : null;
}

/** The word about it at the start. */
export function loweredContextNote(options: ContextOptions, engine: Pick<Engine, 'manifest'>): string | null {
  const tokens = loweredContext(options, engine);
  if (tokens === null) return null;
  return `The KV cache has room for ${tokens} tokens, so that is the longest context; the model's own is ${engine.manifest.maxSeqLen}.`;
}
