import type { Caller } from '../../web/access/api-keys.js';
import { ApiError } from '../../web/errors.js';
import type { MemoryHold } from '../../web/memory/held-memory.js';
import type { InputItem } from '../schemas/response-items.js';
import { OwnConversations, StoredConversation } from './conversation-store.js';
import type { EventLog } from './event-log.js';
import { ItemIndex } from './item-index.js';
import { KeptValues } from './kept-values.js';
import type { OutputItem, ResponseObject } from './response-object.js';
import { storedBytes } from './stored-size.js';

/** A response in the store. */
export interface StoredResponse {
  response: ResponseObject;
  /** Items of its own request, each with an id. */
  input: readonly StoredItem[];
  /** The response that it continues. It stays reachable from here even when the store has dropped it. */
  previous: StoredResponse | null;
  /** Items that its conversation had before it; absent: it belongs to none. */
  before?: readonly KeptItem[] | undefined;
  /** Its events, where they can be read again. */
  events?: readonly string[] | undefined;
}

export type StoredItem = InputItem & { id: string };

/** An item that clients sent or a model made. */
export type KeptItem = StoredItem | OutputItem;

/** A response that is being made. */
export interface ActiveResponse extends Pick<StoredResponse, 'input' | 'previous' | 'before'> {
  /** Its events so far, where they can be read again; else null. */
  events: EventLog | null;
  /** True where it is made whoever reads it. */
  isInBackground: boolean;
  /** The response as it is so far. */
  snapshot(): ResponseObject;
  /** Ends the response with what it has; resolves with the whole of it. */
  cancel(): Promise<ResponseObject>;
  /** Ends the response, which is then not kept. */
  discard(): void;
}

export interface ResponseStoreLimits {
  /** Most responses and conversations together. */
  maxResponses: number;
  /** Most bytes, by estimate; a conversation counts with each response that continues it. */
  maxBytes: number;
}

export const DEFAULT_STORE_LIMITS: Readonly<ResponseStoreLimits> = {
  maxResponses: 1024,
  maxBytes: 64 * 1024 * 1024,
};

/** Share of the store that one conversation may take. */
const CONVERSATION_SHARE = 1 / 4;

/** Store of responses and conversations, within limits that they share: see KeptValues. */
export class ResponseStore {
  readonly #kept: KeptValues<StoredResponse | StoredConversation>;
  readonly #items = new ItemIndex();
  readonly #active = new Map<string, { active: ActiveResponse; owner: string }>();
  readonly #maxConversationBytes: number;

  /** @param hold memory account of what is stored; the oldest is dropped where it has no room. */
  constructor(limits: Partial<ResponseStoreLimits> = {}, hold: MemoryHold | null = null) {
    const { maxResponses, maxBytes } = { ...DEFAULT_STORE_LIMITS, ...limits };
    this.#kept = new KeptValues({ maxValues: maxResponses, maxBytes }, hold, {
      kept: (owner, value) => this.#items.set(owner, value, lentItems(value)),
      gone: (owner, value) => this.#items.set(owner, value, []),
    });
    this.#maxConversationBytes = maxBytes * CONVERSATION_SHARE;
  }

  get size(): number {
    return this.#kept.size;
  }

  get bytes(): number {
    return this.#kept.bytes;
  }

  /** The caller's own responses; those of others are not visible. */
  of({ name }: Pick<Caller, 'name'>): OwnResponses {
    return new OwnResponses(this, name);
  }

  /** The caller's own conversations; those of others are not visible. */
  conversationsOf({ name }: Pick<Caller, 'name'>): OwnConversations {
    return new OwnConversations(
      {
        get: (id) => this.#get(name, id, StoredConversation),
        put: (conversation) => this.#kept.put(name, conversation.id, conversation, conversation.bytes),
        forget: (id) => this.#get(name, id, StoredConversation) !== null && this.#kept.forget(name, id),
      },
      this.#maxConversationBytes,
    );
  }

  /** Stores a response, unless it alone exceeds the limits. */
  put(owner: string, stored: StoredResponse): void {
    this.#kept.put(owner, stored.response.id, stored, storedBytes(stored));
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
    const found = this.#kept.get(owner, id);
    return found instanceof StoredConversation ? null : found;
  }

  /** Removes a response. Returns false where there is none. */
  forget(owner: string, id: string): boolean {
    return this.get(owner, id) !== null && this.#kept.forget(owner, id);
  }

  /** An item in the output of some response, or of some conversation. */
  findItem(owner: string, id: string): KeptItem | null {
    return this.#items.find(owner, id);
  }

  #get<T extends StoredConversation>(owner: string, id: string, kind: new (...args: never) => T): T | null {
    const found = this.#kept.get(owner, id);
    return found instanceof kind ? found : null;
  }
}

/** Items that references may name: the output of a response, or all of a conversation. */
function lentItems(value: StoredResponse | StoredConversation): readonly KeptItem[] {
  return value instanceof StoredConversation ? value.items : value.response.output;
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

  /** Removes a response; one that is made in the background ends first. @throws ApiError 404. */
  delete(id: string): void {
    const active = this.activeResponse(id);
    if (active?.isInBackground) {
      this.end(id);
      active.discard();
      return;
    }
    if (!this.#store.forget(this.#owner, id)) throw notFound(id, null);
  }

  /** An item in the output of some response, or of some conversation. */
  findItem(id: string): KeptItem | null {
    return this.#store.findItem(this.#owner, id);
  }
}

function notFound(id: string, param: string | null): ApiError {
  const message = `There is no response '${id}': it was never stored, was deleted, or had to make room for others.`;
  return new ApiError(404, message, { param, code: 'response_not_found' });
}
