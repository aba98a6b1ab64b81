import { fingerprintWithAdapter } from '../../../engine/peft/adapter-fingerprint.js';
import type { ServedGenerator, ServedModel } from '../served-model.js';
import type { LoadedAdapter } from './model-adapters.js';

const served = new WeakMap<LoadedAdapter, ServedGenerator>();

/** The adapters of a model, each as a model under its own name, with the engine and the state of its base. */
export function servedAdapters(base: ServedModel): ServedGenerator[] {
  if (base.kind !== 'generator') return [];
  return (base.adapters?.list() ?? []).map((adapter) => servedAs(base, adapter));
}

/** Models, each followed by its adapters. */
export function withAdapters(models: readonly ServedModel[]): ServedModel[] {
  return models.flatMap((model) => [model, ...servedAdapters(model)]);
}

/** The same of one adapter; undefined: the model has none of this name. */
export function servedAdapter(base: ServedModel, name: string): ServedGenerator | undefined {
  if (base.kind !== 'generator') return undefined;
  const adapter = base.adapters?.find(name);
  return adapter && servedAs(base, adapter);
}

function servedAs(base: ServedGenerator, adapter: LoadedAdapter): ServedGenerator {
  let model = served.get(adapter);
  if (model === undefined) {
    const { name: id, created } = adapter;
    const { engines } = base;
    model = {
      ...base,
      ...adapter.model,
      get maxInputLen() {
        return adapter.model.maxInputLen;
      },
      get maxSeqLen() {
        return adapter.model.maxSeqLen;
      },
      id,
      aliases: [],
      created,
      get fingerprint() {
        return fingerprintWithAdapter(base.fingerprint, adapter.digest);
      },
      ...(engines === undefined ? {} : { engines: () => engines(id) }),
      adapters: null,
      base: base.id,
    };
    served.set(adapter, model);
  }
  return model;
}

/** Name of the model whose engine answers: its own, or that of its base. */
export function engineName({ id, base = id }: ServedGenerator): string {
  return base;
}
