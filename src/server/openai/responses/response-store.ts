import type { Caller } from '../../api-keys.js';
import type { MemoryHold } from '../../held-memory.js';
import { ApiError } from '../errors.js';
import type { InputItem } from '../schemas/response-items.js';
import type { OutputItem, ResponseObject } from './response-object.js';
import { storedBytes } from './stored-size.js';

/** What is kept of a response. */
export interface StoredResponse {
  response: ResponseObject;
  /** The items of its own request, each with an id. */
  input: readonly StoredItem[];
  /** The response that it went on with. It is reached from here even when the store has let go of it. */
  previous: StoredResponse | null;
}

export type StoredItem = InputItem & { id: string };

/** A response that is being made. */
export interface ActiveResponse {
  input: readonly StoredItem[];
  previous: StoredResponse | null;
  /** The response as far as it is. */
  snapshot(): ResponseObject;
  /** Ends it with what it has; the promise is of the whole. */
  cancel(): Promise<ResponseObject>;
}

export interface ResponseStoreLimits {
  maxResponses: number;
  /** Most memory, by estimate; a conversation counts with each response that goes on with it. */
  maxBytes: number;
}

export const DEFAULT_STORE_LIMITS: Readonly<ResponseStoreLimits> = {
  maxResponses: 1024,
  maxBytes: 64 * 1024 * 1024,
};

interface Entry {
  stored: StoredResponse;
  bytes: number;
  owner: string;
}

/** What is kept for one API key. */
interface Holding {
  responses: number;
  bytes: number;
}

/**
 * Responses by their ids, in memory, those of an API key for itself. There are bounds to all of them together; where they
 * are passed, the key that keeps the most loses what it used longest ago, so that one key cannot crowd out the others.
 */
export class ResponseStore {
  readonly #limits: ResponseStoreLimits;
  /** Entries in the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Map<string, { active: ActiveResponse; owner: string }>();
  readonly #holdings = new Map<string, Holding>();
  readonly #hold: MemoryHold | null;
  #bytes = 0;

  /** @param hold what is kept counts there too, and makes room where that has none. */
  constructor(limits: Partial<ResponseStoreLimits> = {}, hold: MemoryHold | null = null) {
    this.#limits = { ...DEFAULT_STORE_LIMITS, ...limits };
    this.#hold = hold;
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What this caller has; those of others are not there for it. */
  of({ name }: Pick<Caller, 'name'>): OwnResponses {
    return new OwnResponses(this, name);
  }

  /** Keeps a response, unless it alone is more than there is room for. */
  put(owner: string, stored: StoredResponse): void {
    const { id } = stored.response;
    this.forget(owner, id);
    const bytes = storedBytes(stored);
    if (bytes > this.#limits.maxBytes) return;
    this.#entries.set(id, { stored, bytes, owner });
    this.#count(owner, 1, bytes);
    while (this.#entries.size > this.#limits.maxResponses) this.#forgetOldestOf(this.#greatest('responses'));
    while (this.#isTooMuch()) this.#forgetOldestOf(this.#greatest('bytes'));
  }

  begin(owner: string, id: string, active: ActiveResponse): void {
    this.#active.set(id, { active, owner });
  }

  end(owner: string, id: string): void {
    if (this.activeResponse(owner, id) !== null) this.#active.delete(id);
  }

  activeResponse(owner: string, id: string): ActiveResponse | null {
    const found = this.#active.get(id);
    return found?.owner === owner ? found.active : null;
  }

  get(owner: string, id: string): StoredResponse | null {
    const entry = this.#entries.get(id);
    if (entry?.owner !== owner) return null;
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.stored;
  }

  /** False where there is none. */
  forget(owner: string, id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry?.owner !== owner) return false;
    this.#entries.delete(id);
    this.#count(owner, -1, -entry.bytes);
    return true;
  }

  /** An item of the output of some response. */
  findItem(owner: string, id: string): OutputItem | null {
    for (const entry of this.#entries.values()) {
      if (entry.owner !== owner) continue;
      const found = entry.stored.response.output.find((item) => item.id === id);
      if (found !== undefined) return found;
    }
    return null;
  }

  #isTooMuch(): boolean {
    if (this.#entries.size === 0) return false;
    return this.#bytes > this.#limits.maxBytes || this.#hold?.resize(this.#bytes) === false;
  }

  #count(owner: string, responses: number, bytes: number): void {
    const holding = this.#holdings.get(owner) ?? { responses: 0, bytes: 0 };
    holding.responses += responses;
    holding.bytes += bytes;
    this.#bytes += bytes;
    if (bytes < 0) this.#hold?.resize(this.#bytes);
    if (holding.responses === 0) this.#holdings.delete(owner);
    else this.#holdings.set(owner, holding);
  }

  /** Who keeps the most; there is somebody. */
  #greatest(what: keyof Holding): string {
    const [first, ...others] = this.#holdings;
    return others.reduce((most, one) => (one[1][what] > most[1][what] ? one : most), first!)[0];
  }

  #forgetOldestOf(owner: string): void {
    for (const [id, entry] of this.#entries) if (entry.owner === owner) return void this.forget(owner, id);
  }
}

/** The responses of one API key. */
export class OwnResponses {
  readonly #store: ResponseStore;
  readonly #owner: string;

  constructor(store: ResponseStore, owner: string) {
    this.#store = store;
    this.#owner = owner;
  }

  /** Keeps a response, unless it alone is more than there is room for. */
  put(stored: StoredResponse): void {
    this.#store.put(this.#owner, stored);
  }

  begin(id: string, active: ActiveResponse): void {
    this.#store.begin(this.#owner, id, active);
  }

  end(id: string): void {
    this.#store.end(this.#owner, id);
  }

  activeResponse(id: string): ActiveResponse | null {
    return this.#store.activeResponse(this.#owner, id);
  }

  /** @throws ApiError 404. */
  get(id: string, param: string | null = null): StoredResponse {
    const found = this.#store.get(this.#owner, id);
    if (found === null) throw notFound(id, param);
    return found;
  }

  /** @throws ApiError 404. */
  delete(id: string): void {
    if (!this.#store.forget(this.#owner, id)) throw notFound(id, null);
  }

  /** An item of the output of some response. */
  findItem(id: string): OutputItem | null {
    return this.#store.findItem(this.#owner, id);
  }
}

function notFound(id: string, param: string | null): ApiError {
  const message = `There is no response '${id}': it was never stored, was deleted, or had to make room for others.`;
  return new ApiError(404, message, { param, code: 'response_not_found' });
}
