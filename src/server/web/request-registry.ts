import type { Caller } from './access/api-keys.js';

/** A request that is being answered, or prepared for it, as far as other requests can act on it. */
export interface LiveRequest {
  /** Adds a further id by which it can be found. */
  addId(id: string): void;
  /**
   * Sets the function that ends it, once the engine has finished the running iteration; called at once if the request
   * was cancelled before.
   */
  onCancel(cancel: () => void): void;
  /** Removes a request that has ended. */
  release(): void;
}

interface Entry {
  caller: string;
  isCancelled: boolean;
  /** Ends the request; null while it is prepared. */
  cancel: (() => void) | null;
}

/**
 * Requests that are being answered, by the ids that clients know: the X-Request-Id, which clients may choose and use
 * twice, and the id of the answer.
 */
export class RequestRegistry {
  readonly #byId = new Map<string, Set<Entry>>();
  readonly #live = new Set<Entry>();

  /**
   * Prepares an answer. The request can be cancelled from now on, until it is released; where the preparation fails,
   * that is done here.
   */
  async accept<T>(caller: Caller, id: string, prepare: (live: LiveRequest) => Promise<T>): Promise<T> {
    const live = this.#register(caller, id);
    try {
      return await prepare(live);
    } catch (error) {
      live.release();
      throw error;
    }
  }

  #register({ name }: Caller, id: string): LiveRequest {
    const entry: Entry = { caller: name, isCancelled: false, cancel: null };
    this.#live.add(entry);
    const ids = new Set<string>();
    const addId = (one: string) => {
      ids.add(one);
      const entries = this.#byId.get(one);
      if (entries) entries.add(entry);
      else this.#byId.set(one, new Set([entry]));
    };
    addId(id);
    const onCancel = (cancel: () => void) => {
      entry.cancel = cancel;
      if (entry.isCancelled) cancel();
    };
    return { addId, onCancel, release: () => this.#remove(entry, ids) };
  }

  /**
   * Cancels the caller's requests of this id and returns their number. Requests of other API keys are left
   * alone, and their existence is not revealed.
   */
  cancel(id: string, { name }: Caller): number {
    const own = [...(this.#byId.get(id) ?? [])].filter(({ caller }) => caller === name);
    for (const entry of own) {
      entry.isCancelled = true;
      entry.cancel?.();
    }
    return own.length;
  }

  /** Number of requests that are being answered. */
  get live(): number {
    return this.#live.size;
  }

  /** Number of ids in use. */
  get size(): number {
    return this.#byId.size;
  }

  #remove(entry: Entry, ids: ReadonlySet<string>): void {
    this.#live.delete(entry);
    for (const id of ids) {
      const entries = this.#byId.get(id);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byId.delete(id);
    }
  }
}
