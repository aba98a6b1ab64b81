import { createHash } from 'node:crypto';
import type { Presence, RecordStore, StoredRecord } from '../../files/record-store.js';
import { StoredConversation } from './conversation-store.js';
import type { ConversationAt, FindItem, KeptPlace } from './kept-place.js';
import { readKept, writtenConversation, writtenResponse } from './kept-record.js';
import type { KeptLimits } from './kept-values.js';
import { lentItems } from './memory-place.js';
import type { KeptItem, StoredResponse } from './response-store.js';
import { storedBytes } from './stored-size.js';

/** Part of the limits that this server may store before it looks for what has to make room. */
const SLACK = 1 / 16;
/** Times that a response is written whose record another server changes. */
const TRIES = 16;

/** The note of a record: what it counts, and the ids of the items that references may name. */
interface Note {
  bytes: number;
  items: string[];
}

/**
 * Responses and conversations that other servers find too. Each has a record and a note:
 *
 *   OWNER.ID         the value
 *   notes.OWNER.ID   its size, and the ids of its items
 *
 * OWNER is a digest of the owner's name. The limits hold for all servers together: where they are passed by a sixteenth, the server that
 * stores looks for what has to make room, as KeptValues does, the longest unchanged first.
 */
export class SharedPlace implements KeptPlace {
  readonly #records: RecordStore;
  readonly #presence: Presence;
  readonly #limits: KeptLimits;
  readonly #notes = new WeakMap<StoredRecord, Note>();
  /** What was stored since the last look. */
  #fresh = { values: 0, bytes: 0 };
  #looking: Promise<void> | null = null;

  constructor(records: RecordStore, presence: Presence, limits: KeptLimits) {
    this.#records = records;
    this.#presence = presence;
    this.#limits = limits;
  }

  get server(): string {
    return this.#presence.id;
  }

  async putResponse(owner: string, stored: StoredResponse): Promise<void> {
    const { id } = stored.response;
    const bytes = storedBytes(stored);
    if (bytes > this.#limits.maxBytes) return;
    const text = await writtenResponse(stored);
    await this.#note(owner, id, { bytes, items: idsOf(lentItems(stored)) });
    await this.#write(keyOf(owner, id), text);
    await this.#makeRoom(bytes);
  }

  async response(owner: string, id: string): Promise<StoredResponse | null> {
    const found = await this.#read(owner, id);
    return found === null || found.value instanceof StoredConversation ? null : found.value;
  }

  async putConversation(owner: string, conversation: StoredConversation, revision: number): Promise<boolean> {
    const { id, bytes, items } = conversation;
    const key = keyOf(owner, id);
    // Items that are noted and not there are not found; such as are there have to be noted.
    await this.#note(owner, id, { bytes, items: idsOf(items) });
    if ((await this.#records.put(key, await writtenConversation(conversation), revision)) === null)
      return false;
    await this.#makeRoom(bytes);
    return true;
  }

  async conversation(owner: string, id: string): Promise<ConversationAt | null> {
    const found = await this.#read(owner, id);
    if (!(found?.value instanceof StoredConversation)) return null;
    return { conversation: found.value, revision: found.revision };
  }

  async #read(owner: string, id: string) {
    if (!ID.test(id)) return null;
    const record = await this.#records.get(keyOf(owner, id));
    return record === null ? null : { value: await readKept(id, record.text), revision: record.revision };
  }

  async forget(owner: string, id: string): Promise<boolean> {
    if (!ID.test(id)) return false;
    const isThere = await this.#records.remove(keyOf(owner, id));
    await this.#records.remove(`${NOTES}.${keyOf(owner, id)}`);
    return isThere;
  }

  async finder(owner: string): Promise<FindItem> {
    const notes = await this.#records.list(`${NOTES}.${tagOf(owner)}`);
    const holders = new Map<string, string>();
    for (const note of [...notes].sort((one, other) => one.revision - other.revision)) {
      const id = note.key.slice(note.key.lastIndexOf('.') + 1);
      for (const item of this.#noteOf(note).items) if (!holders.has(item)) holders.set(item, id);
    }
    let last: { holder: string; items: readonly KeptItem[] } | null = null;
    return async (id) => {
      const holder = holders.get(id);
      if (holder === undefined) return null;
      if (last?.holder !== holder) {
        const found = await this.#read(owner, holder);
        if (found === null) return null;
        const { value } = found;
        const items = lentItems(value instanceof StoredConversation ? { conversation: value } : value);
        last = { holder, items };
      }
      return last.items.find((item) => item.id === id) ?? null;
    };
  }

  async isUnderWay(server: string): Promise<boolean> {
    return this.#presence.isThere(server);
  }

  /** Notes what a record counts. The last note counts, whichever server writes it. */
  async #note(owner: string, id: string, note: Note): Promise<void> {
    await this.#write(`${NOTES}.${keyOf(owner, id)}`, JSON.stringify(note));
  }

  /** Writes a record, whatever was there. It mostly is a new one. */
  async #write(key: string, text: string): Promise<void> {
    let revision = 0;
    for (let tried = 1; tried <= TRIES; tried++) {
      if ((await this.#records.put(key, text, revision)) !== null) return;
      revision = (await this.#records.get(key))?.revision ?? 0;
    }
  }

  #noteOf(record: StoredRecord): Note {
    const known = this.#notes.get(record);
    if (known !== undefined) return known;
    const note = readNote(record.text);
    this.#notes.set(record, note);
    return note;
  }

  /** Counts what was stored, and takes away what is too much. One look at a time; others count for the next one. */
  async #makeRoom(bytes: number): Promise<void> {
    this.#fresh = { values: this.#fresh.values + 1, bytes: this.#fresh.bytes + bytes };
    const { maxValues, maxBytes } = this.#limits;
    const isDue = this.#fresh.values >= SLACK * maxValues || this.#fresh.bytes >= SLACK * maxBytes;
    if (!isDue || this.#looking !== null) return;
    this.#fresh = { values: 0, bytes: 0 };
    this.#looking = this.#takeAway();
    try {
      await this.#looking;
    } finally {
      this.#looking = null;
    }
  }

  async #takeAway(): Promise<void> {
    const byOwner = new Map<string, { key: string; bytes: number }[]>();
    const notes = [...(await this.#records.list(NOTES))].sort((one, other) => one.revision - other.revision);
    let [values, bytes] = [0, 0];
    for (const note of notes) {
      const key = note.key.slice(NOTES.length + 1);
      const [tag] = key.split('.');
      const entry = { key, bytes: this.#noteOf(note).bytes };
      byOwner.set(tag!, [...(byOwner.get(tag!) ?? []), entry]);
      values++;
      bytes += entry.bytes;
    }
    const { maxValues, maxBytes } = this.#limits;
    while (values > maxValues || bytes > maxBytes) {
      const size = (entries: readonly { bytes: number }[]) =>
        values > maxValues ? entries.length : entries.reduce((sum, one) => sum + one.bytes, 0);
      const greatest = [...byOwner.values()].reduce((most, one) => (size(one) > size(most) ? one : most));
      const oldest = greatest.shift()!;
      values--;
      bytes -= oldest.bytes;
      await this.#records.remove(oldest.key);
      await this.#records.remove(`${NOTES}.${oldest.key}`);
    }
  }
}

const NOTES = 'notes';
const ID = /^(resp|conv)_[0-9a-f]{48}$/;

function tagOf(owner: string): string {
  return `o${createHash('sha256').update(owner).digest('hex').slice(0, 32)}`;
}

function keyOf(owner: string, id: string): string {
  return `${tagOf(owner)}.${id}`;
}

function idsOf(items: readonly KeptItem[]): string[] {
  return items.map(({ id }) => id);
}

/** An invalid note counts nothing, and names nothing. */
function readNote(text: string): Note {
  try {
    const { bytes, items } = JSON.parse(text) as Note;
    const isNote =
      Number.isSafeInteger(bytes) && bytes >= 0 && items.every((item) => typeof item === 'string');
    if (isNote) return { bytes, items };
  } catch {
    // Text that is not a note counts nothing.
  }
  return { bytes: 0, items: [] };
}
