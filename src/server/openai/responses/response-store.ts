import type { Caller } from '../../api-keys.js';
import type { MemoryHold } from '../../held-memory.js';
import { ApiError } from '../errors.js';
import type { InputItem } from '../schemas/response-items.js';
import { EventLog } from './event-log.js';
import type { OutputItem, ResponseObject } from './response-object.js';
import { storedBytes } from './stored-size.js';

/** A response in the store. */
export interface StoredResponse {
  response: ResponseObject;
  /** Items of its own request, each with an id. */
  input: readonly StoredItem[];
  /** The response that it continues. It stays reachable from here even when the store has dropped it. */
  previous: StoredResponse | null;
  /** Its events, where they can be read again. */
  events?: readonly string[] | undefined;
}

export type StoredItem = InputItem & { id: string };

/** A response that is being made. */
export interface ActiveResponse {
  input: readonly StoredItem[];
  previous: StoredResponse | null;
  /** Its events so far, where they can be read again; else null. */
  events: EventLog | null;
  /** The response as it is so far. */
  snapshot(): ResponseObject;
  /** Ends the response with what it has; resolves with the whole of it. */
  cancel(): Promise<ResponseObject>;
}

export interface ResponseStoreLimits {
  maxResponses: number;
  /** Most bytes, by estimate; a conversation counts with each response that continues it. */
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

/** Amounts stored for one API key. */
interface Holding {
  responses: number;
  bytes: number;
}

/**
 * Store of responses by id, in memory, separate for each API key. Limits apply to all keys together; where they are
 * passed, the key that stores the most loses what it used longest ago, so that one key cannot crowd out the others.
 */
export class ResponseStore {
  readonly #limits: ResponseStoreLimits;
  /** Entries in the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Map<string, { active: ActiveResponse; owner: string }>();
  readonly #holdings = new Map<string, Holding>();
  readonly #hold: MemoryHold | null;
  #bytes = 0;

  /** @param hold memory account of the stored responses; responses are dropped where it has no room. */
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

  /** The caller's own responses; those of others are not visible. */
  of({ name }: Pick<Caller, 'name'>): OwnResponses {
    return new OwnResponses(this, name);
  }

  /** Stores a response, unless it alone exceeds the limits. */
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

  /** Removes a response. Returns false where there is none. */
  forget(owner: string, id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry?.owner !== owner) return false;
    this.#entries.delete(id);
    this.#count(owner, -1, -entry.bytes);
    return true;
  }

  /** An item in the output of some response. */
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

  /** Key that stores the most; there is at least one. */
  #greatest(what: keyof Holding): string {
    const [first, ...others] = this.#holdings;
    return others.reduce((most, one) => (one[1][what] > most[1][what] ? one : most), first!)[0];
  }

  #forgetOldestOf(owner: string): void {
    for (const [id, entry] of this.#entries) if (entry.owner === owner) return void this.forget(owner, id);
  }
}

/** Responses of one API key. */
export class OwnResponses {
  readonly #store: ResponseStore;
  readonly #owner: string;

  constructor(store: ResponseStore, owner: string) {
    this.#store = store;
    this.#owner = owner;
  }

  /** Stores a response, unless it alone exceeds the limits. */
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

  /** The stored response of an id. @throws ApiError 404. */
  get(id: string, param: string | null = null): StoredResponse {
    const found = this.#store.get(this.#owner, id);
    if (found === null) throw notFound(id, param);
    return found;
  }

  /** The events of a response. @throws ApiError 404, 400 where they are not kept. */
  events(id: string): EventLog {
    const active = this.activeResponse(id);
    const kept = active === null ? this.get(id).events : undefined;
    const log = active?.events ?? (kept && new EventLog(kept));
    if (log) return log;
    throw new ApiError(
      400,
      `The events of the response '${id}' were not kept: only those of responses with 'background' and 'stream' are.`,
      { param: 'stream', code: 'invalid_value' },
    );
  }

  /** Removes a response. @throws ApiError 404. */
  delete(id: string): void {
    if (!this.#store.forget(this.#owner, id)) throw notFound(id, null);
  }

  /** An item in the output of some response. */
  findItem(id: string): OutputItem | null {
    return this.#store.findItem(this.#owner, id);
  }
}

function notFound(id: string, param: string | null): ApiError {
  const message = `There is no response '${id}': it was never stored, was deleted, or had to make room for others.`;
  return new ApiError(404, message, { param, code: 'response_not_found' });
}
