import { setTimeout as delay } from 'node:timers/promises';
import { StoreError } from '../../../../base/store-errors.js';
import type { Caller } from '../../web/access/api-keys.js';
import { ApiError } from '../../web/errors.js';
import type { InputItem } from '../schemas/response-items.js';
import { OwnConversations } from './conversation-store.js';
import { EventLog } from './event-log.js';
import type { FindItem, KeptPlace } from './kept-place.js';
import { asPrevious } from './kept-record.js';
import type { KeptLimits } from './kept-values.js';
import type { OutputItem, ResponseObject } from './response-object.js';
import type { ResponseTask } from './response-task.js';
import type { ResponseTasks } from './response-tasks.js';

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
  /** True where it is made even without a reader. */
  isInBackground: boolean;
  /** The response as it is so far. */
  snapshot(): ResponseObject;
  /** Ends the response with what it has; resolves with the whole of it. */
  cancel(): Promise<ResponseObject>;
  /** Ends the response, which is then not kept. */
  discard(): void;
}

/** Most responses and conversations together, and most bytes; a conversation counts with each response that continues it. */
export const DEFAULT_STORE_LIMITS: Readonly<KeptLimits> = {
  maxValues: 1024,
  maxBytes: 64 * 1024 * 1024,
};

/** Share of the store that one conversation may take. */
const CONVERSATION_SHARE = 1 / 4;

/** Store of responses and conversations, and of the responses that are being made here. */
export class ResponseStore {
  readonly #place: KeptPlace;
  readonly #active = new Map<string, { active: ActiveResponse; owner: string }>();
  readonly #maxConversationBytes: number;

  /** Responses in the background of all servers that share their place; null: the place is not shared. */
  readonly tasks: ResponseTasks | null;

  /** @param place where they are kept */
  constructor(
    place: KeptPlace,
    maxBytes = DEFAULT_STORE_LIMITS.maxBytes,
    tasks: ResponseTasks | null = null,
  ) {
    this.#place = place;
    this.tasks = tasks;
    this.#maxConversationBytes = maxBytes * CONVERSATION_SHARE;
  }

  /** The caller's own responses; those of others are not visible. */
  of({ name }: Pick<Caller, 'name'>): OwnResponses {
    return new OwnResponses(this, this.#place, name);
  }

  /** The caller's own conversations; those of others are not visible. */
  conversationsOf({ name }: Pick<Caller, 'name'>): OwnConversations {
    return new OwnConversations(this.#place, name, this.#maxConversationBytes);
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
}

/** Responses of one API key. */
export class OwnResponses {
  readonly #store: ResponseStore;
  readonly #place: KeptPlace;
  readonly #owner: string;
  #finder: Promise<FindItem> | null = null;

  constructor(store: ResponseStore, place: KeptPlace, owner: string) {
    this.#store = store;
    this.#place = place;
    this.#owner = owner;
  }

  /** Stores a response, unless it alone exceeds the limits. @throws the store's errors */
  put(stored: StoredResponse): Promise<void> {
    return this.#place.putResponse(this.#owner, stored);
  }

  /** Takes a response away, if it is there. @throws the store's errors */
  async forget(id: string): Promise<void> {
    await this.#place.forget(this.#owner, id);
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
  async get(id: string, param: string | null = null): Promise<StoredResponse> {
    const found = await this.#place.response(this.#owner, id);
    if (found === null) throw notFound(id, param);
    return found;
  }

  /** The response as it is so far, or as it is kept. @throws ApiError 404. */
  async shown(id: string): Promise<ResponseObject> {
    const active = this.activeResponse(id);
    const snapshot = active?.snapshot() ?? null;
    // One that has ended is shown as such when all servers show it.
    const isKeptNext =
      this.#store.tasks !== null && active?.isInBackground && snapshot?.status !== 'in_progress';
    if (snapshot !== null && !isKeptNext) return snapshot;
    return (await this.#taskUnlessKept(id))?.response ?? (await this.get(id)).response;
  }

  /** A task of another server; null: there is none, or the response is kept. */
  async #taskUnlessKept(id: string): Promise<ResponseTask | null> {
    const { tasks } = this.#store;
    // A response is kept before its task is gone.
    const task = tasks === null ? null : await tasks.find(this.#owner, id);
    return task !== null && (await this.#place.response(this.#owner, id)) === null ? task : null;
  }

  /** What a response answers, whether it is being made or kept. @throws ApiError 404. */
  async asked(id: string): Promise<Pick<StoredResponse, 'input' | 'previous' | 'before'>> {
    const active = this.activeResponse(id);
    if (active !== null) return active;
    const task = await this.#taskUnlessKept(id);
    const made = task === null ? null : await this.#store.tasks!.input(id);
    if (made === null) return this.get(id);
    const { input, history, conversation } = made;
    return { input, previous: asPrevious(history), before: conversation?.before };
  }

  /** Ends a response that is being made with what it has; null: it is not being made. @throws ApiError 404, 503. */
  async cancel(id: string): Promise<ResponseObject | null> {
    const active = this.activeResponse(id);
    const { tasks } = this.#store;
    if (active !== null && (tasks === null || !active.isInBackground)) return active.cancel();
    if (tasks === null || (await this.#taskUnlessKept(id)) === null) return null;
    if (!(await tasks.stop(this.#owner, id, 'isCancelled'))) return null;
    void active?.cancel();
    await tasks.ended(this.#owner, id);
    return (await this.get(id)).response;
  }

  /** Events of a response that another server makes, as they come; null: none makes it, or there are none. */
  async eventsElsewhere(id: string, onMore: (text: string) => void): Promise<EventLog | null> {
    const task = await this.#taskUnlessKept(id);
    if (task === null || (await this.#store.tasks!.input(id))?.json.stream !== true) return null;
    const log = new EventLog();
    void followTask(log, {
      more: (bytes) => this.#store.tasks!.events(id, bytes),
      isUnderWay: async () => (await this.#taskUnlessKept(id)) !== null,
      kept: async () => (await this.#place.response(this.#owner, id))?.events ?? null,
      onMore,
    });
    return log;
  }

  /** Removes a response; one that is made in the background ends first. @throws ApiError 404. */
  async delete(id: string): Promise<void> {
    const active = this.activeResponse(id);
    // No server continues it, should this one end first.
    const isTask = (await this.#store.tasks?.stop(this.#owner, id, 'isDiscarded')) ?? false;
    if (active?.isInBackground) {
      this.end(id);
      active.discard();
    }
    // It may have been kept just now.
    if (isTask) await this.forget(id);
    if (isTask || active?.isInBackground) return;
    const isThere = (await this.#place.response(this.#owner, id)) !== null;
    if (!isThere || !(await this.#place.forget(this.#owner, id))) throw notFound(id, null);
  }

  /** An item in the output of some response, or of some conversation, as it was when the first one was looked for. */
  async findItem(id: string): Promise<KeptItem | null> {
    this.#finder ??= this.#place.finder(this.#owner);
    return (await this.#finder)(id);
  }
}

function notFound(id: string, param: string | null): ApiError {
  const message = `There is no response '${id}': it was never stored, was deleted, or had to make room for others.`;
  return new ApiError(404, message, { param, code: 'response_not_found' });
}

/** Milliseconds between two looks for more events. */
const POLL_MS = 200;

/** What is known of a response that another server makes. */
interface FollowedTask {
  /** Text of the events that are stored, from a number of bytes on. */
  more(bytes: number): Promise<string>;
  isUnderWay(): Promise<boolean>;
  /** All events, once the response is kept; null: it is not. */
  kept(): Promise<readonly string[] | null>;
  /** Counts what is to be sent. @throws ApiError where there is no room */
  onMore(text: string): void;
}

/**
 * Fills a log with the events of a response that another server makes, until it has ended or the log has no
 * reader. Never rejects.
 */
async function followTask(log: EventLog, task: FollowedTask): Promise<void> {
  let bytes = 0;
  const add = (text: string) => {
    if (text === '') return;
    task.onMore(text);
    bytes += Buffer.byteLength(text);
    log.append(text);
  };
  let isFirst = true;
  try {
    while (isFirst || log.isRead) {
      isFirst = false;
      try {
        const isUnderWay = await task.isUnderWay();
        if (isUnderWay) add(await task.more(bytes));
        else {
          add((await task.kept())?.slice(log.frames.length).join('') ?? '');
          break;
        }
      } catch (error) {
        if (!(error instanceof StoreError) || error.kind !== 'away') throw error;
      }
      await delay(POLL_MS);
    }
  } catch {
    // Its reader has what came so far, and may ask for the rest.
  }
  log.end();
}
