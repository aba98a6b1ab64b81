import { ConversationDatabase, ConversationMemory, type ConversationPlace } from './conversation-places.js';
import { lengthOfFiles, type StoredConversation, withContents } from './stored-conversation.js';

/** How many conversations of a file were taken in. */
export interface Merged {
  taken: number;
  /** Those that are here as they are in the file, or in a later state. */
  here: number;
  /** Older ones, of the file or of those that were here, that are not kept any more. */
  dropped: number;
}

/** What is kept of a conversation: without its files where there is no room for them, or nothing. */
export type Kept = 'all' | 'texts' | 'nothing';

/** Conversations that are kept: older ones are dropped. */
export const MAX_CONVERSATIONS = 200;
/** Characters of the contents of all files that are kept. */
export const MAX_CONTENT = 200e6;

/** Conversations of this browser, in IndexedDB; where there is none (a private window), of this tab. */
export class ConversationStore {
  readonly #place: Promise<ConversationPlace>;

  constructor(factory: IDBFactory | null) {
    const database = factory === null ? Promise.resolve(null) : ConversationDatabase.open(factory);
    this.#place = database.then((opened) => opened ?? new ConversationMemory());
  }

  /** All of them, the latest first, the contents of their files left out. */
  async list(): Promise<StoredConversation[]> {
    const all = await (await this.#place).list();
    return all.sort(latestFirst);
  }

  /** One of them, the contents of its files left out. */
  async head(id: string): Promise<StoredConversation | null> {
    return (await this.#place).head(id);
  }

  /** One of them, with its files. */
  async find(id: string): Promise<StoredConversation | null> {
    return (await this.#place).find(id);
  }

  /** Keeps a conversation, in place of the oldest of the others where there are too many. Files without content stay as they are kept. */
  async put(conversation: StoredConversation): Promise<Kept> {
    const place = await this.#place;
    const others = (await this.list()).filter(({ id }) => id !== conversation.id);
    const dropped = others.splice(MAX_CONVERSATIONS - 1).map(({ id }) => id);
    if (lengthOfFiles([...others, conversation]) <= MAX_CONTENT) {
      if (await place.write([conversation], dropped)) return 'all';
    }
    const texts = withContents(conversation, () => null);
    return (await place.write([texts], dropped)) ? 'texts' : 'nothing';
  }

  /**
   * Takes conversations in: the latest are kept of these and of those that are here, and of two with one id the one that
   * changed later.
   * @throws Error with a sentence where there is no room for them: then all stays as it was
   */
  async merge(conversations: readonly StoredConversation[]): Promise<Merged> {
    const here = new Map((await this.list()).map((one) => [one.id, one]));
    const incoming = new Map<string, StoredConversation>();
    for (const one of conversations) {
      const known = incoming.get(one.id) ?? here.get(one.id);
      if (known === undefined || known.changedMs < one.changedMs) incoming.set(one.id, one);
    }
    const all = [...new Map([...here, ...incoming]).values()].sort(latestFirst);
    const latest = all.slice(0, MAX_CONVERSATIONS);
    const kept = new Set(latest);
    const taken = [...incoming.values()].filter((one) => kept.has(one));
    const dropped = [...here.values()].filter((one) => !kept.has(one) && !incoming.has(one.id));
    const hasRoom =
      lengthOfFiles(latest) <= MAX_CONTENT &&
      (await (
        await this.#place
      ).write(
        taken,
        dropped.map(({ id }) => id),
      ));
    if (!hasRoom) throw new Error('This browser has no room for these conversations: delete others first.');
    return {
      taken: taken.length,
      here: new Set(conversations.map(({ id }) => id)).size - incoming.size,
      dropped: all.length - kept.size,
    };
  }

  async remove(id: string): Promise<void> {
    await (await this.#place).write([], [id]);
  }
}

const latestFirst = (one: StoredConversation, other: StoredConversation) => other.changedMs - one.changedMs;
