import type { ServedModel } from '../../serving/served-model.js';

/** One entry of GET /v1/models. `max_model_len` is where clients of other engines look for the context length. */
export function modelObject(model: ServedModel) {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: 'skein',
    max_model_len: model.maxSeqLen,
  };
}
