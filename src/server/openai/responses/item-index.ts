import type { KeptItem } from './response-store.js';

/** Stored value that has items: a response or a conversation. */
type Holder = object;

/**
 * Items of stored values, by their owner and id. Several values may have an item of one id: the one that was stored
 * first is found, then, once it is gone, the next.
 */
export class ItemIndex {
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

  /** Indexes the items of a value in place of those that it had. Only what differs behind their common start is changed. */
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
