import { createHash } from 'node:crypto';
import type { ModelFacts } from '../../serving/model-facts.js';
import type { StoredModel } from '../../serving/on-demand/model-store.js';
import type { ServedModel } from '../../serving/served-model.js';
import { taggedName } from './names.js';

/** What Ollama's lists say of a model's kind; texts are empty where it is not known without reading the model. */
export interface ModelDetails {
  parent_model: string;
  format: string;
  family: string;
  families: string[] | null;
  parameter_size: string;
  quantization_level: string;
}

export function detailsOf(facts: ModelFacts | null, parent = ''): ModelDetails {
  if (facts === null) {
    return {
      parent_model: parent,
      format: '',
      family: '',
      families: null,
      parameter_size: '',
      quantization_level: '',
    };
  }
  const { format, config, parameters, precision } = facts;
  return {
    parent_model: parent,
    format,
    family: config.architecture,
    families: [config.architecture],
    parameter_size: parameterSize(parameters),
    quantization_level: precision.toUpperCase(),
  };
}

/** A number of weights as people write it: 134.5M, 7.2B. */
function parameterSize(count: number): string {
  for (const [unit, name] of [
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'K'],
  ] as const) {
    if (count >= unit) return `${(count / unit).toFixed(1).replace(/\.0$/, '')}${name}`;
  }
  return String(count);
}

/** What the files of a served model say; null: they cannot be read any more, or it has none. */
export function factsOfServed(model: ServedModel): ModelFacts | null {
  try {
    return model.facts?.() ?? null;
  } catch {
    return null; // the engine's folder is gone from the disk; the model runs without it
  }
}

/** Bytes of memory that a served model takes: its weights, and its cache when it is full. */
export function memoryOf(model: ServedModel): number {
  return (factsOfServed(model)?.weightBytes ?? 0) + (model.cacheBytes ?? 0);
}

/** Fields that a served model has in every list. */
export function servedFields(model: ServedModel) {
  const facts = factsOfServed(model);
  const name = taggedName(model.id);
  const base = model.kind === 'generator' ? model.base : undefined;
  return {
    name,
    model: name,
    size: facts?.weightBytes ?? 0,
    digest: facts?.digest ?? createHash('sha256').update(model.id).digest('hex'),
    details: detailsOf(facts, base),
  };
}

/** The same of a model of the folder. What its files say is read where it is loaded: there are many. */
export function storedFields(stored: StoredModel, served: ServedModel | undefined) {
  const name = taggedName(stored.name);
  const facts = served === undefined ? null : factsOfServed(served);
  const { format, quant, size, digest, modifiedMs } = stored;
  const details = { ...detailsOf(facts), format, ...(quant === '' ? {} : { quantization_level: quant }) };
  return { name, model: name, size, digest, details, modified_at: new Date(modifiedMs).toISOString() };
}
