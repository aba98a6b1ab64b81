import { MAX_JSON_VALUES } from '../../web/bodies/json-size.js';
import { ApiError } from '../../web/errors.js';
import type { RequestMemory } from '../../web/memory/request-memory.js';
import type { RequestTerms } from '../../web/request-terms.js';
import { MAX_ITEMS } from '../schemas/response-items.js';
import type { OwnConversations } from './conversation-store.js';
import { EventLog } from './event-log.js';
import type { ResponseObject } from './response-object.js';
import type { KeptItem, OwnResponses, ResponseStore, StoredResponse } from './response-store.js';
import {
  historySize,
  itemsBytes,
  lastWhole,
  type TakenSize,
  takenSize,
  turnOf,
  valueBytes,
} from './stored-size.js';

/** A stored conversation, or the responses before one, as a request takes it. */
export interface TakenHistory {
  /** Items that a model still receives: starting with the last one that replaces all before it. */
  told: readonly KeptItem[];
}

/** What the server keeps for a caller, as one request sees it: all that the request takes is counted before it is read. */
export class OwnStore {
  readonly responses: OwnResponses;
  readonly conversations: OwnConversations;
  readonly #taken: TakenState;

  /** @param maxBytes bytes of the longest body */
  constructor(
    store: ResponseStore,
    { caller, memory }: Pick<RequestTerms, 'caller' | 'memory'>,
    maxBytes: number,
  ) {
    this.responses = store.of(caller);
    this.conversations = store.conversationsOf(caller);
    this.#taken = new TakenState(memory, maxBytes);
  }

  /** The response that a request continues. @throws ApiError 404, 400, 413, 429. */
  async previous(id: string): Promise<TakenHistory & { response: StoredResponse }> {
    const param = 'previous_response_id';
    const response = await this.responses.get(id, param);
    this.#taken.take(historySize(response), param);
    return { response, told: toldHistory(response) };
  }

  /** The items of the conversation that a request continues. @throws ApiError 404, 400, 413, 429. */
  async conversation(id: string): Promise<TakenHistory & { items: readonly KeptItem[] }> {
    const { items } = await this.conversations.get(id, 'conversation');
    const told = items.slice(Math.max(0, lastWhole(items)));
    this.#taken.take(takenSize(told), 'conversation');
    return { items, told };
  }

  /** The item that a reference names. @param param path of its id. @throws ApiError 404, 400, 413, 429. */
  async item(id: string, param: string): Promise<KeptItem> {
    const found = await this.responses.findItem(id);
    if (found === null) {
      const message = `'${param}' is '${id}', but no stored response or conversation has such an item.`;
      throw new ApiError(404, message, { param, code: 'item_not_found' });
    }
    this.#taken.take(takenSize([found]), param);
    return found;
  }

  /** Counts items that are shown: they stay alive until the last of them is sent. @throws ApiError 413, 429. */
  show(items: readonly KeptItem[]): void {
    this.#taken.hold(itemsBytes(items));
  }

  /** The same of a response. */
  showResponse(response: ResponseObject): void {
    this.#taken.hold(valueBytes(response));
  }

  /** The events of a response, to be sent. @throws ApiError 404, 400 where they are not kept, 413, 429. */
  async events(id: string): Promise<EventLog> {
    const active = this.responses.activeResponse(id);
    // Those of a response that is being made are in its own account.
    if (active?.events) return active.events;
    const elsewhere =
      active === null
        ? await this.responses.eventsElsewhere(id, (text) => this.#taken.hold(Buffer.byteLength(text)))
        : null;
    if (elsewhere !== null) return elsewhere;
    const kept = active === null ? (await this.responses.get(id)).events : undefined;
    if (kept !== undefined) {
      this.#taken.hold(valueBytes(kept));
      return new EventLog(kept);
    }
    const message = `The events of the response '${id}' were not kept: only those of responses with 'background' and 'stream' are.`;
    throw new ApiError(400, message, { param: 'stream', code: 'invalid_value' });
  }
}

/** Items of a response, and of those that it continues, which a model still receives; the oldest first. */
export function toldHistory(last: StoredResponse): KeptItem[] {
  const turns: KeptItem[][] = [];
  for (let link: StoredResponse | null = last; link !== null; link = link.previous) {
    const items = turnOf(link);
    const whole = lastWhole(items);
    turns.push(whole < 0 ? items : items.slice(whole));
    if (whole >= 0) break;
  }
  return turns.reverse().flat();
}

/**
 * What one request takes out of the store. A reference of 50 bytes may stand for megabytes, and a thousand references for
 * gigabytes: the sum meets the limits of a body, and counts as memory of the request, before anything of it is read.
 */
class TakenState {
  readonly #memory: RequestMemory;
  readonly #maxBytes: number;
  #items = 0;
  #bytes = 0;
  #work = 0;

  /** @param maxBytes bytes of the longest body */
  constructor(memory: RequestMemory, maxBytes: number) {
    this.#memory = memory;
    this.#maxBytes = maxBytes;
  }

  /** Counts what is about to be read. @param param field that asks for it. @throws ApiError 400, 413, 429. */
  take({ items, bytes, work, memory }: TakenSize, param: string): void {
    this.#items += items;
    this.#bytes += bytes;
    this.#work += work;
    if (this.#items > MAX_ITEMS)
      throw tooMuch(400, param, `has ${this.#items} items, at most ${MAX_ITEMS} are taken`);
    if (this.#bytes > this.#maxBytes)
      throw tooMuch(413, param, `has ${this.#bytes} bytes, at most ${this.#maxBytes} are taken`);
    if (this.#work > MAX_JSON_VALUES)
      throw tooMuch(400, param, `holds more than ${MAX_JSON_VALUES} values, which is the limit`);
    this.#memory.addTaken(memory);
  }

  /** Counts what is only written into the answer. @throws ApiError 413, 429. */
  hold(bytes: number): void {
    this.#memory.addTaken(bytes);
  }
}

function tooMuch(status: 400 | 413, param: string, found: string): ApiError {
  const message = `What this request takes from stored responses and conversations ${found}, as of a body.`;
  return new ApiError(status, message, { param, code: 'conversation_too_long' });
}
