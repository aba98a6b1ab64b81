import type { Caller } from './api-keys.js';

/** A request that is being answered, as far as others can get at it. */
export interface LiveRequest {
  /** A further id under which it can be found. */
  addId(id: string): void;
  /** It has ended: it is found no more. */
  release(): void;
}

interface Entry {
  caller: string;
  cancel: () => void;
}

/**
 * The requests that are being answered, by the ids that clients know them by: the X-Request-Id, which clients may choose
 * and use twice, and the id of the answer.
 */
export class RequestRegistry {
  readonly #byId = new Map<string, Set<Entry>>();

  /** `cancel` ends the request, as soon as the engine has finished the iteration that runs. */
  register({ name }: Caller, id: string, cancel: () => void): LiveRequest {
    const entry: Entry = { caller: name, cancel };
    const ids = new Set<string>();
    const addId = (one: string) => {
      ids.add(one);
      const entries = this.#byId.get(one);
      if (entries) entries.add(entry);
      else this.#byId.set(one, new Set([entry]));
    };
    addId(id);
    return { addId, release: () => this.#remove(entry, ids) };
  }

  /**
   * Cancels what the caller has under this id; how many requests that were. Those of other API keys are left alone, and
   * nobody learns whether there are any.
   */
  cancel(id: string, { name }: Caller): number {
    const own = [...(this.#byId.get(id) ?? [])].filter(({ caller }) => caller === name);
    for (const { cancel } of own) cancel();
    return own.length;
  }

  /** Ids in use. */
  get size(): number {
    return this.#byId.size;
  }

  #remove(entry: Entry, ids: ReadonlySet<string>): void {
    for (const id of ids) {
      const entries = this.#byId.get(id);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byId.delete(id);
    }
  }
}
