import type { ServedModel } from '../../serving/served-model.js';

/** An entry of GET /v1/models in the form of Anthropic's API. */
export function modelInfo(model: ServedModel) {
  return {
    type: 'model',
    id: model.id,
    display_name: model.id,
    created_at: new Date(model.created * 1000).toISOString(),
    max_input_tokens: model.maxSeqLen,
    max_tokens: model.maxSeqLen,
    capabilities: null,
    line: null,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
  };
}

/** All models on one page. */
export function modelPage(models: readonly ServedModel[]) {
  return {
    data: models.map(modelInfo),
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
    has_more: false,
  };
}
