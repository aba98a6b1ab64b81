import { randomBytes } from 'node:crypto';
import { ApiError } from '../../web/errors.js';
import { MAX_ITEMS } from '../schemas/response-items.js';
import type { KeptPlace } from './kept-place.js';
import type { KeptItem } from './response-store.js';
import { withNewId } from './stored-items.js';
import { itemsBytes, valueBytes } from './stored-size.js';

/** Bytes of a conversation without metadata and items. */
const EMPTY_BYTES = 1024;
/** Attempts to change a conversation, where another server has changed it meanwhile. */
const TRIES = 32;

export type Metadata = Readonly<Record<string, string>>;

export interface ConversationFields {
  id: string;
  /** Seconds since 1970. */
  createdAt: number;
  metadata: Metadata;
  items: readonly KeptItem[];
  /** The turn of a response that is being made; null: there is none. */
  turn: { id: string; server: string } | null;
}

/** A conversation: items in the order in which they came, which responses answer and add to. It does not change: a change makes another. */
export class StoredConversation {
  readonly fields: ConversationFields;

  constructor(fields: ConversationFields) {
    this.fields = fields;
  }

  static made(metadata: Metadata): StoredConversation {
    const id = `conv_${randomBytes(24).toString('hex')}`;
    const createdAt = Math.floor(Date.now() / 1000);
    return new StoredConversation({ id, createdAt, metadata, items: [], turn: null });
  }

  get id(): string {
    return this.fields.id;
  }

  get items(): readonly KeptItem[] {
    return this.fields.items;
  }

  /** Bytes that it takes, by estimate. */
  get bytes(): number {
    return EMPTY_BYTES + valueBytes(this.fields.metadata) + itemsBytes(this.items);
  }

  /** The conversation as clients see it. */
  toJson() {
    const { id, createdAt: created_at, metadata } = this.fields;
    return { id, object: 'conversation' as const, created_at, metadata };
  }

  with(changed: Partial<ConversationFields>): StoredConversation {
    return new StoredConversation({ ...this.fields, ...changed });
  }

  /** With items at the end. One whose id is there already, such as one that a client has sent again, gets another. */
  add(items: readonly KeptItem[]): StoredConversation {
    const known = new Set(this.items.map(({ id }) => id));
    const added = items.map((item) => {
      const one = known.has(item.id) ? withNewId(item) : item;
      known.add(one.id);
      return one;
    });
    return this.with({ items: [...this.items, ...added] });
  }
}

/** A response's turn in a conversation, in which there is no other. */
export interface ConversationTurn {
  /** Id of the conversation. */
  id: string;
  /** Id of the turn. */
  turnId: string;
  /** Items before the turn. */
  items: readonly KeptItem[];
  /** Ends the turn, with the items that it adds. Later calls have no effect. @throws the store's errors */
  end(added: readonly KeptItem[]): Promise<void>;
}

/** Conversations of one API key. */
export class OwnConversations {
  readonly #place: KeptPlace;
  readonly #owner: string;
  readonly #maxBytes: number;

  /** @param maxBytes most bytes of one conversation, by estimate */
  constructor(place: KeptPlace, owner: string, maxBytes: number) {
    this.#place = place;
    this.#owner = owner;
    this.#maxBytes = maxBytes;
  }

  /** @throws ApiError 400 where the items are too large. */
  async create(metadata: Metadata, items: readonly KeptItem[]): Promise<StoredConversation> {
    const empty = StoredConversation.made(metadata);
    this.#checkRoom(empty, items, 'items');
    const conversation = empty.add(items);
    await this.#place.putConversation(this.#owner, conversation, 0);
    return conversation;
  }

  /** @throws ApiError 404. */
  async get(id: string, param: string | null = null): Promise<StoredConversation> {
    const found = await this.#place.conversation(this.#owner, id);
    if (found !== null) return found.conversation;
    const message = `There is no conversation '${id}': it was never made, was deleted, or had to make room for others.`;
    throw new ApiError(404, message, { param, code: 'conversation_not_found' });
  }

  /** Changes a conversation, again after a concurrent change; null: there is none. */
  async #change(
    id: string,
    change: (conversation: StoredConversation) => StoredConversation | Promise<StoredConversation>,
  ): Promise<StoredConversation | null> {
    for (let tried = 1; tried <= TRIES; tried++) {
      const found = await this.#place.conversation(this.#owner, id);
      if (found === null) return null;
      const changed = await change(found.conversation);
      if (changed === found.conversation) return changed;
      if (await this.#place.putConversation(this.#owner, changed, found.revision)) return changed;
    }
    throw new ApiError(503, `The conversation '${id}' changes all the time; ask again.`, {
      code: 'server_busy',
      headers: { 'retry-after': '1' },
    });
  }

  /** @throws ApiError 404. */
  async update(id: string, metadata: Metadata): Promise<StoredConversation> {
    return (await this.#change(id, (conversation) => conversation.with({ metadata }))) ?? this.get(id);
  }

  /** Removes a conversation; a response of it that is being made continues. @throws ApiError 404. */
  async delete(id: string): Promise<void> {
    await this.get(id);
    await this.#place.forget(this.#owner, id);
  }

  /** Adds items at the end and returns them as they are kept. @throws ApiError 404, 400 where there is no room or a response is being made. */
  async add(id: string, items: readonly KeptItem[]): Promise<readonly KeptItem[]> {
    const changed = await this.#change(id, async (conversation) => {
      await this.#checkFree(conversation, null);
      this.#checkRoom(conversation, items, 'items');
      return conversation.add(items);
    });
    return (changed ?? (await this.get(id))).items.slice(-items.length);
  }

  /** An item of a conversation. @throws ApiError 404. */
  async item(id: string, itemId: string): Promise<KeptItem> {
    const found = (await this.get(id)).items.find((item) => item.id === itemId);
    if (found === undefined) throw noItem(id, itemId);
    return found;
  }

  /** Removes an item. @throws ApiError 404. */
  async removeItem(id: string, itemId: string): Promise<StoredConversation> {
    const changed = await this.#change(id, (conversation) => {
      const items = conversation.items.filter((item) => item.id !== itemId);
      if (items.length === conversation.items.length) throw noItem(id, itemId);
      return conversation.with({ items });
    });
    return changed ?? this.get(id);
  }

  /**
   * Begins a response's turn, which has to be ended. Another response would neither see this one's answer nor
   * know its place after it, and is refused, in OpenAI's words.
   * @throws ApiError 404, 400 where another response has its turn or there is no room for the input.
   */
  async beginTurn(id: string, input: readonly KeptItem[]): Promise<ConversationTurn> {
    const turn = { id: randomBytes(12).toString('hex'), server: this.#place.server };
    const begun = await this.#change(id, async (conversation) => {
      await this.#checkFree(conversation, 'conversation');
      this.#checkRoom(conversation, input, 'conversation');
      return conversation.with({ turn });
    });
    const { items } = begun ?? (await this.get(id, 'conversation'));
    return this.turn(id, turn.id, items);
  }

  /** A turn that was begun, here or by a server that is gone. */
  turn(id: string, turnId: string, items: readonly KeptItem[]): ConversationTurn {
    let hasEnded = false;
    const end = async (added: readonly KeptItem[]) => {
      if (hasEnded) return;
      await this.#change(id, (conversation) => {
        const isOurs = conversation.fields.turn?.id === turnId;
        const last = added.at(-1);
        // A server that is gone had already ended it, but could not report that.
        if (!isOurs && (last === undefined || conversation.items.some((item) => item.id === last.id)))
          return conversation;
        const free = isOurs ? conversation.with({ turn: null }) : conversation;
        return added.length === 0 ? free : free.add(added);
      });
      hasEnded = true;
    };
    return { id, turnId, items, end };
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

  async #checkFree({ fields: { turn } }: StoredConversation, param: string | null): Promise<void> {
    // The turn of a server that is gone is over.
    if (turn === null || !(await this.#place.isUnderWay(turn.server))) return;
    const message =
      'Another process is currently operating on this conversation. Please retry in a few seconds.';
    throw new ApiError(400, message, { param, code: 'conversation_locked' });
  }
}

function noItem(id: string, itemId: string): ApiError {
  return new ApiError(404, `The conversation '${id}' has no item '${itemId}'.`, { code: 'item_not_found' });
}
