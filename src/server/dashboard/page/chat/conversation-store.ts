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

const NAME = 'skein-chat';
const STORE = 'conversations';
/** Conversations that are kept: older ones are dropped. */
export const MOST_CONVERSATIONS = 200;
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
    const all = (await this.#ask('readonly', (store) => store.getAll())) ?? [...this.#memory.values()];
    return (all as StoredConversation[]).sort((one, other) => other.changedMs - one.changedMs);
  }

  async put(conversation: StoredConversation): Promise<void> {
    this.#memory.set(conversation.id, conversation);
    await this.#ask('readwrite', (store) => store.put(conversation));
    for (const { id } of (await this.list()).slice(MOST_CONVERSATIONS)) await this.remove(id);
  }

  async remove(id: string): Promise<void> {
    this.#memory.delete(id);
    await this.#ask('readwrite', (store) => store.delete(id));
  }

  /** null: there is no store. */
  async #ask<T>(mode: IDBTransactionMode, ask: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | null> {
    const database = await this.#open;
    if (database === null) return null;
    return new Promise((resolve) => {
      const request = ask(database.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => resolve(request.result);
      // Full, or closed by the browser: the conversation is still on the page.
      request.onerror = () => resolve(null);
    });
  }
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

/** Title of a conversation: the beginning of its first question. */
export function titleOf(question: string): string {
  const line = question.trim().replace(/\s+/g, ' ');
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1)}…`;
}

/** Text of an exported file. */
export function exported(conversations: readonly StoredConversation[]): string {
  return JSON.stringify({ format: 'skein-conversations', version: 1, conversations }, null, 1);
}

/** Conversations of an exported file. @throws Error with a sentence where it is none */
export function imported(text: string): StoredConversation[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('This file is not JSON.');
  }
  const { format, conversations } = (file ?? {}) as { format?: unknown; conversations?: unknown };
  if (format !== 'skein-conversations' || !Array.isArray(conversations)) {
    throw new Error('This file has no conversations that this page has exported.');
  }
  return conversations.map((one, index) => {
    if (isConversation(one)) return one;
    throw new Error(`Conversation ${index + 1} of this file cannot be read.`);
  });
}

function isConversation(value: unknown): value is StoredConversation {
  const { id, title, model, changedMs, turns } = (value ?? {}) as Record<string, unknown>;
  const isTurn = (turn: unknown) => {
    const { question, answer, reasoning } = (turn ?? {}) as Record<string, unknown>;
    return [question, answer, reasoning].every((text) => typeof text === 'string');
  };
  const isNamed = typeof id === 'string' && id !== '' && typeof title === 'string';
  const isDated = Number.isFinite(changedMs) && (model === null || typeof model === 'string');
  return isNamed && isDated && Array.isArray(turns) && turns.length > 0 && turns.every(isTurn);
}
