import type { StoredModel } from '../../serving/on-demand/model-store.js';
import type { ServedModel } from '../../serving/served-model.js';

/** An entry of GET /v1/models in the form of Anthropic's API. */
export function modelInfo({ id, created, maxSeqLen }: ServedModel) {
  return infoOf(id, created * 1000, maxSeqLen);
}

/**
 * The same for a model that lies in the folder and is not loaded: the length of its context is known once it
 * is loaded.
 */
export function storedModelInfo({ name, modifiedMs }: StoredModel) {
  return infoOf(name, modifiedMs, null);
}

function infoOf(id: string, createdMs: number, contextTokens: number | null) {
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: new Date(createdMs).toISOString(),
    max_input_tokens: contextTokens,
    max_tokens: contextTokens,
    capabilities: null,
    line: null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
  };
}

/** All models on one page. */
export function modelPage(models: readonly { id: string }[]) {
  return {
    data: models,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
    has_more: false,
  };
}
