import type { ModelConfig } from './model-config.js';
import type { FieldPath } from './written-config.js';

/**
 * Models whose answers do not follow from one request keep none. Words are Triton's.
 * @param refuse for a field, with the rest of a sentence that begins with it
 */
export function checkCache(config: ModelConfig, refuse: (path: FieldPath, rest: string) => never): void {
  if (config.response_cache?.enable !== true) return;
  const why =
    config.sequence_batching !== undefined
      ? 'sequence batching scheduler'
      : config.model_transaction_policy.decoupled
        ? "'decoupled' transaction policy"
        : null;
  if (why === null) return;
  refuse(
    ['response_cache'],
    `is enabled: Response Cache does not currently support model ${config.name} with ${why}. Please disable the response cache.`,
  );
}
