import type { MemoryHold } from '../../web/memory/held-memory.js';
import type { StoredConversation } from './conversation-store.js';
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

/** Stored value that has items: a response or a conversation. */
type Holder = object;

/**
 * Items of stored values, by their owner and id. Several values may have an item of one id: the one that was stored
 * first is found, then, once it is gone, the next.
 */
class ItemIndex {
  readonly #byOwner = new Map<string, Map<string, Map<Holder, KeptItem>>>();
  /** Items of each value that are in the index. */
  readonly #indexed = new Map<Holder, readonly KeptItem[]>();

  /** Number of values with items in the index. */
  get size(): number {
    return this.#indexed.size;
  }

  find(owner: string, id: string): KeptItem | null {
    const [item = null] = this.#byOwner.get(owner)?.get(id)?.values() ?? [];
    return item;
  }

  /**
   * Indexes the items of a value in place of its earlier ones. Only what differs after their common start is
   * changed.
   */
  set(owner: string, holder: Holder, items: readonly KeptItem[]): void {
    const before = this.#indexed.get(holder) ?? [];
    let same = 0;
    while (same < before.length && before[same] === items[same]) same++;
    for (const { id } of before.slice(same)) this.#remove(owner, holder, id);
    for (const item of items.slice(same)) this.#add(owner, holder, item);
    if (items.length === 0) this.#indexed.delete(holder);
    else this.#indexed.set(holder, items);
  }

  #add(owner: string, holder: Holder, item: KeptItem): void {
    let byId = this.#byOwner.get(owner);
    if (byId === undefined) {
      byId = new Map();
      this.#byOwner.set(owner, byId);
    }
    const found = byId.get(item.id);
    if (found === undefined) byId.set(item.id, new Map([[holder, item]]));
    else found.set(holder, item);
  }

  #remove(owner: string, holder: Holder, id: string): void {
    const byId = this.#byOwner.get(owner);
    const found = byId?.get(id);
    if (byId === undefined || found === undefined) return;
    found.delete(holder);
    if (found.size > 0) return;
    byId.delete(id);
    if (byId.size === 0) this.#byOwner.delete(owner);
  }
}
