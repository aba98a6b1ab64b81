import type { ServedModel } from '../../serving/served-model.js';

/** One entry of GET /v1/models. Clients of other engines look for the context length in `max_model_len`. */
export function modelObject(model: ServedModel) {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: 'skein',
    max_model_len: model.maxSeqLen,
  };
}
