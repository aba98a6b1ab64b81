import { servedAdapter, servedAdapters } from './adapters/served-adapters.js';
import { ExpectedModels } from './expected-models.js';
import type { ServedModel } from './served-model.js';

export interface ModelChange {
  /** Kind of change; `state`: the state of its engine changed. */
  kind: 'added' | 'removed' | 'state';
  model: ServedModel;
}

/**
 * The models served at present. They come and go while requests are answered: code that needs a model asks for it each
 * time, and code that keeps something for each follows the changes.
 */
export interface ModelDirectory {
  /**
   * All models in the order in which they were added, also those whose engine is down: their requests wait,
   * or are refused with the reason.
   */
  list(): readonly ServedModel[];
  /** The model with this name or alias, or a model with its LoRA adapter of this name. */
  find(name: string): ServedModel | undefined;
  /** Models that are known by name alone; absent: there are none. */
  readonly expected?: ExpectedModels;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: (change: ModelChange) => void): () => void;
}

/** Calls the listener as if each model had just been added, and then after each change, as onChange does. */
export function followModels(models: ModelDirectory, listener: (change: ModelChange) => void): () => void {
  for (const model of models.list()) listener({ kind: 'added', model });
  return models.onChange(listener);
}

/** A directory whose owner adds and removes models. Starting and ending engines is the owner's task. */
export class LiveModels implements ModelDirectory {
  readonly expected: ExpectedModels;
  #list: readonly ServedModel[] = [];
  readonly #byName = new Map<string, ServedModel>();
  /** Functions that stop following the state of each model. */
  readonly #leave = new Map<ServedModel, () => void>();
  readonly #listeners = new Set<(change: ModelChange) => void>();

  constructor(expected = new ExpectedModels()) {
    this.expected = expected;
  }

  list(): readonly ServedModel[] {
    return this.#list;
  }

  find(name: string): ServedModel | undefined {
    const model = this.#byName.get(name);
    if (model !== undefined) return model;
    for (const base of this.#list) {
      const adapter = servedAdapter(base, name);
      if (adapter !== undefined) return adapter;
    }
    return undefined;
  }

  onChange(listener: (change: ModelChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Why no other model can have the name, as a clause; null: it can. Names of models, aliases and adapters, also of those that are being
   * loaded, are one name space. @param own name of the model that asks, whose names are its own
   */
  whyTaken(name: string, own: string | null = null): string | null {
    const model = this.#byName.get(name);
    if (model !== undefined) {
      return model.id === own ? null : `'${name}' is a name of the model '${model.id}' already`;
    }
    const base = this.#list.find((one) => one.kind === 'generator' && one.adapters?.has(name) === true);
    if (base === undefined || base.id === own) return null;
    return `'${name}' is a LoRA adapter of the model '${base.id}' already`;
  }

  /**
   * Adds a model, which requests find from now on. @throws Error where another model has one of its names; nothing is
   * then added.
   */
  add(model: ServedModel): void {
    const taken = namesOf(model).map((name) => this.whyTaken(name));
    const why = taken.find((one) => one !== null);
    if (why !== undefined) throw new Error(`The model '${model.id}' cannot be added: ${why}.`);
    for (const name of [model.id, ...model.aliases]) this.#byName.set(name, model);
    this.#list = [...this.#list, model];
    this.#leave.set(
      model,
      model.state.onChange(() => this.#tell({ kind: 'state', model })),
    );
    this.#tell({ kind: 'added', model });
  }

  /**
   * Removes a model, which no request finds from now on; those that have found it continue, until its engine
   * is closed.
   * @param id the model's own name. @returns the model; undefined where no model has this name.
   */
  remove(id: string): ServedModel | undefined {
    const model = this.#list.find((served) => served.id === id);
    if (model === undefined) return undefined;
    for (const name of [model.id, ...model.aliases]) this.#byName.delete(name);
    this.#list = this.#list.filter((served) => served !== model);
    this.#leave.get(model)!();
    this.#leave.delete(model);
    this.#tell({ kind: 'removed', model });
    return model;
  }

  #tell(change: ModelChange): void {
    for (const listener of [...this.#listeners]) listener(change);
  }
}

/** All names by which requests find a model: its own, its aliases, and those of its adapters. */
export function namesOf(model: ServedModel): string[] {
  return [model.id, ...model.aliases, ...servedAdapters(model).map(({ id }) => id)];
}
