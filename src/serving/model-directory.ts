import type { ServedModel } from './served-model.js';

export interface ModelChange {
  /** `state`: how its engine fares. */
  kind: 'added' | 'removed' | 'state';
  model: ServedModel;
}

/**
 * The models that are served right now. They come and go while requests are answered: who needs one asks for it each time,
 * and who keeps something for each follows.
 */
export interface ModelDirectory {
  /** In the order in which they were added. One whose engine is down is among them: its requests wait, or are told why not. */
  list(): readonly ServedModel[];
  /** The model that has this name, or goes by it too. */
  find(name: string): ServedModel | undefined;
  /** Calls the listener after each change, until the function that it returns is called. */
  onChange(listener: (change: ModelChange) => void): () => void;
}

/** Calls the listener as if each model had just been added, and then after each change, as onChange does. */
export function followModels(models: ModelDirectory, listener: (change: ModelChange) => void): () => void {
  for (const model of models.list()) listener({ kind: 'added', model });
  return models.onChange(listener);
}

/** A directory whose owner adds and removes models. It starts and ends no engine: that is the owner's. */
export class LiveModels implements ModelDirectory {
  #list: readonly ServedModel[] = [];
  readonly #byName = new Map<string, ServedModel>();
  /** Of each model, what ends the following of its state. */
  readonly #leave = new Map<ServedModel, () => void>();
  readonly #listeners = new Set<(change: ModelChange) => void>();

  list(): readonly ServedModel[] {
    return this.#list;
  }

  find(name: string): ServedModel | undefined {
    return this.#byName.get(name);
  }

  onChange(listener: (change: ModelChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** From now on requests find it. @throws where another model has one of its names; then nothing was added. */
  add(model: ServedModel): void {
    const names = new Set([model.id, ...model.aliases]);
    for (const name of names) {
      const other = this.#byName.get(name);
      if (other === undefined) continue;
      throw new Error(
        `The model '${model.id}' cannot be added: '${name}' is a name of the model '${other.id}' already.`,
      );
    }
    for (const name of names) this.#byName.set(name, model);
    this.#list = [...this.#list, model];
    this.#leave.set(
      model,
      model.state.onChange(() => this.#tell({ kind: 'state', model })),
    );
    this.#tell({ kind: 'added', model });
  }

  /**
   * From now on no request finds it; those that have found it go on, until its engine is closed.
   * @param id its own name. @returns the model; undefined where there is none of this name.
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
