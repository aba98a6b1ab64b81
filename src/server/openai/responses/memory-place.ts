import type { MemoryHold } from '../../web/memory/held-memory.js';
import type { StoredConversation } from './conversation-store.js';
import { ItemIndex } from './item-index.js';
import type { ConversationAt, FindItem, KeptPlace } from './kept-place.js';
import { type KeptLimits, KeptValues } from './kept-values.js';
import type { KeptItem, StoredResponse } from './response-store.js';
import { storedBytes } from './stored-size.js';

/** A conversation in memory: the holder of its items in the index. */
class HeldConversation implements ConversationAt {
  conversation: StoredConversation;
  revision: number;

  constructor(conversation: StoredConversation, revision: number) {
    this.conversation = conversation;
    this.revision = revision;
  }
}

/** Responses and conversations of this process alone, within limits that they share: see KeptValues. */
export class MemoryPlace implements KeptPlace {
  readonly server = '';
  readonly #kept: KeptValues<StoredResponse | HeldConversation>;
  readonly #items = new ItemIndex();
  #revision = 0;

  /** @param hold memory account of what is stored; the oldest is dropped where it has no room. */
  constructor(limits: KeptLimits, hold: MemoryHold | null) {
    this.#kept = new KeptValues(limits, hold, {
      kept: (owner, value) => this.#items.set(owner, value, lentItems(value)),
      gone: (owner, value) => this.#items.set(owner, value, []),
    });
  }

  get size(): number {
    return this.#kept.size;
  }

  get bytes(): number {
    return this.#kept.bytes;
  }

  async putResponse(owner: string, stored: StoredResponse): Promise<void> {
    this.#kept.put(owner, stored.response.id, stored, storedBytes(stored));
  }

  async response(owner: string, id: string): Promise<StoredResponse | null> {
    const found = this.#kept.get(owner, id);
    return found instanceof HeldConversation ? null : found;
  }

  async putConversation(owner: string, conversation: StoredConversation, revision: number): Promise<boolean> {
    const { id, bytes } = conversation;
    const found = this.#kept.get(owner, id);
    const held = found instanceof HeldConversation ? found : null;
    if ((held?.revision ?? 0) !== revision) return false;
    const next = held ?? new HeldConversation(conversation, 0);
    next.conversation = conversation;
    next.revision = ++this.#revision;
    this.#kept.put(owner, id, next, bytes);
    return true;
  }

  async conversation(owner: string, id: string): Promise<ConversationAt | null> {
    const found = this.#kept.get(owner, id);
    // What was read does not change with the next change.
    return found instanceof HeldConversation ? { ...found } : null;
  }

  async forget(owner: string, id: string): Promise<boolean> {
    return this.#kept.forget(owner, id);
  }

  async finder(owner: string): Promise<FindItem> {
    return async (id) => this.#items.find(owner, id);
  }

  async isUnderWay(): Promise<boolean> {
    return true;
  }
}

/** Items that references may name: the output of a response, or all of a conversation. */
export function lentItems(value: StoredResponse | Pick<ConversationAt, 'conversation'>): readonly KeptItem[] {
  return 'conversation' in value ? value.conversation.items : value.response.output;
}
