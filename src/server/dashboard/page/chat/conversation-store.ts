/** A question and its answer as they are kept. */
export interface StoredTurn {
  question: string;
  answer: string;
  reasoning: string;
}

/** A conversation as it is kept in the browser, exported and imported. */
export interface StoredConversation {
  id: string;
  title: string;
  model: string | null;
  /** When it last changed, in milliseconds since 1970. */
  changedMs: number;
  turns: readonly StoredTurn[];
  /** Tokens that it takes in the model's context; absent: not known. */
  contextTokens?: number;
}

/** How many conversations of a file were taken in. */
export interface Merged {
  taken: number;
  /** Those that are here as they are in the file, or in a later state. */
  here: number;
  /** Older ones, of the file or of those that were here, that are not kept any more. */
  dropped: number;
}

const NAME = 'skein-chat';
const STORE = 'conversations';
/** Conversations that are kept: older ones are dropped. */
export const MAX_CONVERSATIONS = 200;
const LONGEST_TITLE = 60;

/** Conversations of this browser, in IndexedDB; where there is none (a private window), of this tab. */
export class ConversationStore {
  readonly #open: Promise<IDBDatabase | null>;
  readonly #memory = new Map<string, StoredConversation>();

  constructor(factory: IDBFactory | null) {
    this.#open = factory === null ? Promise.resolve(null) : opened(factory);
  }

  /** All of them, the latest first. */
  async list(): Promise<StoredConversation[]> {
    const database = await this.#open;
    const all =
      database === null
        ? [...this.#memory.values()]
        : ((await read<StoredConversation[]>(database, (store) => store.getAll())) ?? []);
    return all.sort(latestFirst);
  }

  async find(id: string): Promise<StoredConversation | null> {
    const database = await this.#open;
    if (database === null) return this.#memory.get(id) ?? null;
    return read<StoredConversation>(database, (store) => store.get(id));
  }

  /** Keeps a conversation, in place of the oldest of the others where there are too many. */
  async put(conversation: StoredConversation): Promise<void> {
    await this.#write([conversation], []);
    const others = (await this.list()).filter(({ id }) => id !== conversation.id);
    const dropped = others.slice(MAX_CONVERSATIONS - 1);
    if (dropped.length > 0) await this.#write([], dropped);
  }

  /**
   * Takes conversations in: the latest are kept of these and of those that are here, and of two with one id the one that
   * changed later.
   */
  async merge(conversations: readonly StoredConversation[]): Promise<Merged> {
    const here = new Map((await this.list()).map((one) => [one.id, one]));
    const incoming = new Map<string, StoredConversation>();
    for (const one of conversations) {
      const known = incoming.get(one.id) ?? here.get(one.id);
      if (known === undefined || known.changedMs < one.changedMs) incoming.set(one.id, one);
    }
    const all = [...new Map([...here, ...incoming]).values()].sort(latestFirst);
    const kept = new Set(all.slice(0, MAX_CONVERSATIONS));
    const taken = [...incoming.values()].filter((one) => kept.has(one));
    const dropped = [...here.values()].filter((one) => !kept.has(one) && !incoming.has(one.id));
    await this.#write(taken, dropped);
    return {
      taken: taken.length,
      here: new Set(conversations.map(({ id }) => id)).size - incoming.size,
      dropped: all.length - kept.size,
    };
  }

  async remove(id: string): Promise<void> {
    await this.#write([], [{ id }]);
  }

  /** In one transaction: all of it happens, or nothing. */
  async #write(
    kept: readonly StoredConversation[],
    removed: readonly Pick<StoredConversation, 'id'>[],
  ): Promise<void> {
    const database = await this.#open;
    if (database === null) {
      for (const one of kept) this.#memory.set(one.id, one);
      for (const { id } of removed) this.#memory.delete(id);
      return;
    }
    await new Promise<void>((resolve) => {
      const transaction = database.transaction(STORE, 'readwrite');
      const store = transaction.objectStore(STORE);
      for (const one of kept) store.put(one);
      for (const { id } of removed) store.delete(id);
      transaction.oncomplete = () => resolve();
      // Full, or closed by the browser: the conversation is still on the page.
      transaction.onabort = () => resolve();
    });
  }
}

const latestFirst = (one: StoredConversation, other: StoredConversation) => other.changedMs - one.changedMs;

/** null where there is nothing, or the browser does not give it. */
function read<T>(database: IDBDatabase, ask: (store: IDBObjectStore) => IDBRequest): Promise<T | null> {
  return new Promise((resolve) => {
    const request = ask(database.transaction(STORE, 'readonly').objectStore(STORE));
    request.onsuccess = () => resolve((request.result as T | undefined) ?? null);
    request.onerror = () => resolve(null);
  });
}

function opened(factory: IDBFactory): Promise<IDBDatabase | null> {
  return new Promise((resolve) => {
    const request = factory.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => resolve(null);
    request.onblocked = () => resolve(null);
  });
}

/** Title of a conversation: the one that the reader gave to what is stored of it, else the beginning of its first question. */
export function titleIn(turns: readonly StoredTurn[], stored: StoredConversation | null): string {
  const isGiven = stored !== null && stored.title !== titleOf(stored.turns[0]!.question);
  return isGiven ? stored.title : titleOf(turns[0]!.question);
}

/** The beginning of a question. */
export function titleOf(question: string): string {
  const line = question.trim().replace(/\s+/g, ' ');
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1)}…`;
}
