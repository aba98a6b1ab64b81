import { randomBytes } from 'node:crypto';
import { ApiError } from '../../web/errors.js';
import { MAX_ITEMS } from '../schemas/response-items.js';
import type { KeptItem } from './response-store.js';
import { withNewId } from './stored-items.js';
import { itemsBytes, valueBytes } from './stored-size.js';

/** Bytes of a conversation without metadata and items. */
const EMPTY_BYTES = 1024;

export type Metadata = Readonly<Record<string, string>>;

/** A conversation: items in the order in which they came, which responses answer and add to. */
export class StoredConversation {
  readonly id = `conv_${randomBytes(24).toString('hex')}`;
  readonly createdAt = Math.floor(Date.now() / 1000);
  metadata: Metadata;
  /** Replaced, not changed, when items come or go: whoever has the list keeps what it was. */
  items: readonly KeptItem[] = [];
  #itemBytes = 0;
  /** True while a response of it is made. */
  isBusy = false;

  constructor(metadata: Metadata) {
    this.metadata = metadata;
  }

  /** Bytes that it takes, by estimate. */
  get bytes(): number {
    return EMPTY_BYTES + valueBytes(this.metadata) + this.#itemBytes;
  }

  /** The conversation as clients see it. */
  toJson() {
    const { id, createdAt: created_at, metadata } = this;
    return { id, object: 'conversation' as const, created_at, metadata };
  }

  /** Adds items at the end. One whose id is there already, such as one that a client has sent again, gets another. */
  add(items: readonly KeptItem[]): void {
    const known = new Set(this.items.map(({ id }) => id));
    const added = items.map((item) => {
      const one = known.has(item.id) ? withNewId(item) : item;
      known.add(one.id);
      return one;
    });
    this.items = [...this.items, ...added];
    this.#itemBytes += itemsBytes(added);
  }

  /** Removes an item. Returns false where there is none. */
  remove(id: string): boolean {
    const found = this.items.find((item) => item.id === id);
    if (found === undefined) return false;
    this.items = this.items.filter((item) => item !== found);
    this.#itemBytes -= itemsBytes([found]);
    return true;
  }
}

/** The part of the store in which the conversations of one API key are. */
interface ConversationPlace {
  get(id: string): StoredConversation | null;
  put(conversation: StoredConversation): void;
  forget(id: string): boolean;
}

/** A response's turn in a conversation, in which there is no other. */
export interface ConversationTurn {
  id: string;
  /** Items before the turn. */
  items: readonly KeptItem[];
  /** Ends the turn, with the items that it adds. Later calls have no effect. */
  end(added: readonly KeptItem[]): void;
}

/** Conversations of one API key. */
export class OwnConversations {
  readonly #place: ConversationPlace;
  readonly #maxBytes: number;

  /** @param maxBytes most bytes of one conversation, by estimate */
  constructor(place: ConversationPlace, maxBytes: number) {
    this.#place = place;
    this.#maxBytes = maxBytes;
  }

  /** @throws ApiError 400 where the items are too large. */
  create(metadata: Metadata, items: readonly KeptItem[]): StoredConversation {
    const conversation = new StoredConversation(metadata);
    this.#checkRoom(conversation, items, 'items');
    conversation.add(items);
    this.#place.put(conversation);
    return conversation;
  }

  /** @throws ApiError 404. */
  get(id: string, param: string | null = null): StoredConversation {
    const found = this.#place.get(id);
    if (found !== null) return found;
    const message = `There is no conversation '${id}': it was never made, was deleted, or had to make room for others.`;
    throw new ApiError(404, message, { param, code: 'conversation_not_found' });
  }

  /** @throws ApiError 404. */
  update(id: string, metadata: Metadata): StoredConversation {
    const conversation = this.get(id);
    conversation.metadata = metadata;
    this.#place.put(conversation);
    return conversation;
  }

  /** Removes a conversation; a response of it that is being made goes on. @throws ApiError 404. */
  delete(id: string): void {
    this.get(id);
    this.#place.forget(id);
  }

  /** Adds items at the end and returns them as they are kept. @throws ApiError 404, 400 where there is no room or a response is being made. */
  add(id: string, items: readonly KeptItem[]): readonly KeptItem[] {
    const conversation = this.get(id);
    checkFree(conversation, null);
    this.#checkRoom(conversation, items, 'items');
    conversation.add(items);
    this.#place.put(conversation);
    return conversation.items.slice(-items.length);
  }

  /** An item of a conversation. @throws ApiError 404. */
  item(id: string, itemId: string): KeptItem {
    const found = this.get(id).items.find((item) => item.id === itemId);
    if (found === undefined) throw noItem(id, itemId);
    return found;
  }

  /** Removes an item. @throws ApiError 404. */
  removeItem(id: string, itemId: string): StoredConversation {
    const conversation = this.get(id);
    if (!conversation.remove(itemId)) throw noItem(id, itemId);
    this.#place.put(conversation);
    return conversation;
  }

  /**
   * Begins a response's turn, which has to be ended. Another response would neither see this one's answer nor know its
   * place behind it, and is refused, in OpenAI's words.
   * @throws ApiError 404, 400 where another response has its turn or there is no room for the input.
   */
  beginTurn(id: string, input: readonly KeptItem[]): ConversationTurn {
    const conversation = this.get(id, 'conversation');
    checkFree(conversation, 'conversation');
    this.#checkRoom(conversation, input, 'conversation');
    conversation.isBusy = true;
    let hasEnded = false;
    return {
      id,
      items: conversation.items,
      end: (added) => {
        if (hasEnded) return;
        hasEnded = true;
        conversation.isBusy = false;
        if (added.length === 0 || this.#place.get(id) !== conversation) return;
        conversation.add(added);
        this.#place.put(conversation);
      },
    };
  }

  #checkRoom(conversation: StoredConversation, items: readonly KeptItem[], param: string): void {
    const count = conversation.items.length + items.length;
    const bytes = conversation.bytes + itemsBytes(items);
    if (count <= MAX_ITEMS && bytes <= this.#maxBytes) return;
    const found =
      count > MAX_ITEMS
        ? `${count} items, at most ${MAX_ITEMS} are kept`
        : `${bytes} bytes, at most ${this.#maxBytes} are kept`;
    throw new ApiError(400, `With these items the conversation would have ${found}.`, {
      param,
      code: 'conversation_too_long',
    });
  }
}

function checkFree({ isBusy }: StoredConversation, param: string | null): void {
  if (!isBusy) return;
  const message =
    'Another process is currently operating on this conversation. Please retry in a few seconds.';
  throw new ApiError(400, message, { param, code: 'conversation_locked' });
}

function noItem(id: string, itemId: string): ApiError {
  return new ApiError(404, `The conversation '${id}' has no item '${itemId}'.`, { code: 'item_not_found' });
}
