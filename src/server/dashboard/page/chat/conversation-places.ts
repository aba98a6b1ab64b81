import { asTree, filesOf, type StoredConversation, withContents } from './stored-conversation.js';

/** Where conversations are kept, with the contents of their files apart from them. */
export interface ConversationPlace {
  /** All of them, the contents of their files left out. */
  list(): Promise<StoredConversation[]>;
  /** One of them, the contents of its files left out. */
  head(id: string): Promise<StoredConversation | null>;
  /** One of them, with the contents of its files as far as they are there. */
  find(id: string): Promise<StoredConversation | null>;
  /**
   * All of it happens, or nothing. A file without content stays as it is kept; files that a conversation has no more are dropped.
   * @returns false where there is no room
   */
  write(kept: readonly StoredConversation[], removed: readonly string[]): Promise<boolean>;
}

/** Conversations of this tab, which end with it. */
export class ConversationMemory implements ConversationPlace {
  readonly #all = new Map<string, StoredConversation>();

  async list(): Promise<StoredConversation[]> {
    return [...this.#all.values()];
  }

  async head(id: string): Promise<StoredConversation | null> {
    return this.#all.get(id) ?? null;
  }

  find(id: string): Promise<StoredConversation | null> {
    return this.head(id);
  }

  async write(kept: readonly StoredConversation[], removed: readonly string[]): Promise<boolean> {
    for (const one of kept) this.#all.set(one.id, one);
    for (const id of removed) this.#all.delete(id);
    return true;
  }
}

const NAME = 'skein-chat';
const CONVERSATIONS = 'conversations';
/** Contents of files, by the ids of their conversation and of the file. */
const CONTENTS = 'contents';

/** Conversations of this browser, in IndexedDB. Those that were kept before there were branches are read as such, and written as trees. */
export class ConversationDatabase implements ConversationPlace {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /** null where the browser gives none, as in a private window. */
  static open(factory: IDBFactory): Promise<ConversationDatabase | null> {
    return new Promise((resolve) => {
      const request = factory.open(NAME, 2);
      request.onupgradeneeded = ({ oldVersion }) => {
        if (oldVersion < 1) request.result.createObjectStore(CONVERSATIONS, { keyPath: 'id' });
        request.result.createObjectStore(CONTENTS);
      };
      request.onsuccess = () => resolve(new ConversationDatabase(request.result));
      request.onerror = () => resolve(null);
      request.onblocked = () => resolve(null);
    });
  }

  async list(): Promise<StoredConversation[]> {
    const all = await this.#read<StoredConversation[]>(CONVERSATIONS, (store) => store.getAll());
    return (all ?? []).map(asTree);
  }

  async head(id: string): Promise<StoredConversation | null> {
    const found = await this.#read<StoredConversation>(CONVERSATIONS, (store) => store.get(id));
    return found === null ? null : asTree(found);
  }

  async find(id: string): Promise<StoredConversation | null> {
    const found = await this.head(id);
    if (found === null || filesOf(found).length === 0) return found;
    const [keys, contents] = await Promise.all([
      this.#read<[string, string][]>(CONTENTS, (store) => store.getAllKeys(filesRange(id))),
      this.#read<string[]>(CONTENTS, (store) => store.getAll(filesRange(id))),
    ]);
    const known = new Map(keys?.map(([, file], index) => [file, contents?.[index] ?? null]));
    return withContents(found, (file) => known.get(file.id) ?? null);
  }

  write(kept: readonly StoredConversation[], removed: readonly string[]): Promise<boolean> {
    return new Promise((resolve) => {
      const transaction = this.#database.transaction([CONVERSATIONS, CONTENTS], 'readwrite');
      const conversations = transaction.objectStore(CONVERSATIONS);
      const contents = transaction.objectStore(CONTENTS);
      for (const one of kept) {
        conversations.put(withContents(one, () => null));
        putContents(contents, one);
      }
      for (const id of removed) {
        conversations.delete(id);
        contents.delete(filesRange(id));
      }
      transaction.oncomplete = () => resolve(true);
      // Full, or closed by the browser.
      transaction.onabort = () => resolve(false);
    });
  }

  /** null where there is nothing, or the browser does not give it. */
  #read<T>(name: string, ask: (store: IDBObjectStore) => IDBRequest): Promise<T | null> {
    return new Promise((resolve) => {
      const request = ask(this.#database.transaction(name, 'readonly').objectStore(name));
      request.onsuccess = () => resolve((request.result as T | undefined) ?? null);
      request.onerror = () => resolve(null);
    });
  }
}

/** Keys of all files of a conversation. */
const filesRange = (id: string) => IDBKeyRange.bound([id], [id, []]);

/** Puts the contents that are not there yet, and drops those of files that the conversation has no more. */
function putContents(contents: IDBObjectStore, conversation: StoredConversation): void {
  const { id } = conversation;
  const files = new Map(filesOf(conversation).map((file) => [file.id, file.content]));
  const request = contents.getAllKeys(filesRange(id));
  request.onsuccess = () => {
    const there = new Set((request.result as [string, string][]).map(([, file]) => file));
    for (const [file, content] of files) {
      if (content !== null && !there.has(file)) contents.put(content, [id, file]);
    }
    for (const file of there) if (!files.has(file)) contents.delete([id, file]);
  };
}
