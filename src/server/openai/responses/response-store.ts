import { ApiError } from '../errors.js';
import type { InputItem } from '../schemas/response-items.js';
import type { OutputItem, ResponseObject } from './response-object.js';

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
  /** As far as it is. */
  snapshot(): ResponseObject;
  /** Ends it with what it has; the promise is of the whole. */
  cancel(): Promise<ResponseObject>;
}

export interface ResponseStoreLimits {
  maxResponses: number;
  /** Of JSON, a conversation counted with each response that goes on with it. */
  maxBytes: number;
}

export const DEFAULT_STORE_LIMITS: Readonly<ResponseStoreLimits> = {
  maxResponses: 1024,
  maxBytes: 64 * 1024 * 1024,
};

interface Entry {
  stored: StoredResponse;
  bytes: number;
}

/** Responses by their ids, in memory: the ones used longest ago go first. */
export class ResponseStore {
  readonly #limits: ResponseStoreLimits;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Map<string, ActiveResponse>();
  #bytes = 0;

  constructor(limits: Partial<ResponseStoreLimits> = {}) {
    this.#limits = { ...DEFAULT_STORE_LIMITS, ...limits };
  }

  get size(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a response, unless it alone is more than there is room for. */
  put(stored: StoredResponse): void {
    const { id } = stored.response;
    this.#forget(id);
    const bytes = bytesOf(stored);
    if (bytes > this.#limits.maxBytes) return;
    this.#entries.set(id, { stored, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.maxResponses && this.#bytes <= this.#limits.maxBytes) return;
      this.#forget(oldest);
    }
  }

  begin(id: string, active: ActiveResponse): void {
    this.#active.set(id, active);
  }

  end(id: string): void {
    this.#active.delete(id);
  }

  activeResponse(id: string): ActiveResponse | null {
    return this.#active.get(id) ?? null;
  }

  /** @throws ApiError 404. */
  get(id: string, param: string | null = null): StoredResponse {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw notFound(id, param);
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.stored;
  }

  /** @throws ApiError 404. */
  delete(id: string): void {
    if (!this.#forget(id)) throw notFound(id, null);
  }

  /** An item of the output of some response. */
  findItem(id: string): OutputItem | null {
    for (const { stored } of this.#entries.values()) {
      const found = stored.response.output.find((item) => item.id === id);
      if (found !== undefined) return found;
    }
    return null;
  }

  #forget(id: string): boolean {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    this.#entries.delete(id);
    this.#bytes -= entry.bytes;
    return true;
  }
}

/** With all that it holds on to, so that what is reached from entries alone stays within the limit too. */
function bytesOf(stored: StoredResponse): number {
  let bytes = 0;
  for (let link: StoredResponse | null = stored; link !== null; link = link.previous) {
    bytes += Buffer.byteLength(JSON.stringify([link.response, link.input]));
  }
  return bytes;
}

function notFound(id: string, param: string | null): ApiError {
  const message = `There is no response '${id}': it was never stored, was deleted, or had to make room for others.`;
  return new ApiError(404, message, { param, code: 'response_not_found' });
}
