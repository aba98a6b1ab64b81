import { samplingFields } from '../../generation/sampling-defaults.js';
import type { StoredModel } from '../../serving/on-demand/model-store.js';
import { enginesOf, type ServedModel } from '../../serving/served-model.js';

/** One entry of GET /v1/models. Clients of other engines look for the context length in `max_model_len`. */
export function modelObject(model: ServedModel) {
  return {
    id: model.id,
    object: 'model',
    created: model.created,
    owned_by: 'skein',
    ...lineage(model),
    max_model_len: model.maxSeqLen,
    ...(model.kind === 'generator'
      ? { input_modalities: inputsOf(model), system_fingerprints: [...enginesOf(model).keys()] }
      : model.pictures && { input_modalities: inputsOf(model) }),
    ...workersOf(model),
    ...recommended(model),
  };
}

/**
 * The same for a model that lies in the folder and is not loaded: the length of its context is known once it
 * is loaded.
 */
export function storedModelObject({ name: id, modifiedMs }: StoredModel) {
  const created = Math.floor(modifiedMs / 1000);
  return { id, object: 'model', created, owned_by: 'skein', root: id, parent: null };
}

/** What its messages, or inputs to embed, may have, by the names that other lists of models have for it. */
const inputsOf = (model: ServedModel): string[] =>
  (model.kind === 'generator' ? model.sight : model.pictures) == null ? ['text'] : ['text', 'image'];

/** Workers of a model of a gateway: one without those that answer is known, and its requests wait for the first. */
function workersOf(model: ServedModel) {
  const workers = model.kind === 'generator' ? model.statistics.workers?.() : undefined;
  if (workers === undefined) return {};
  const { ready, loading: loading_workers, fraction: loading_fraction } = workers;
  if (loading_workers === 0) return { workers: ready };
  return { workers: ready, loading_workers, ...(loading_fraction === null ? {} : { loading_fraction }) };
}

/** The same of a model of which a gateway knows the name alone. */
export function expectedModelObject(id: string, created: number) {
  return { id, object: 'model', created, owned_by: 'skein', root: id, parent: null, workers: 0 };
}

/** Settings that a request has if it names none, where the model's makers recommend some. */
function recommended(model: ServedModel): { sampling_defaults?: Record<string, number> } {
  const sampling_defaults = samplingFields(model.kind === 'generator' ? model.sampling : undefined);
  return Object.keys(sampling_defaults).length === 0 ? {} : { sampling_defaults };
}

/** An adapter's base model, as vLLM reports it: `parent` of an adapter, and `root` of both. */
function lineage(model: ServedModel): { root: string; parent: string | null } {
  const base = model.kind === 'generator' ? model.base : undefined;
  return { root: base ?? model.id, parent: base ?? null };
}
