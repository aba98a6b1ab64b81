import type { ConversationStore, Kept } from './conversation-store.js';
import { newId, type StoredConversation, titleIn } from './stored-conversation.js';

/** Name under which a tab keeps the id of its conversation. */
const OPENED = 'skein-conversation';

/** Keeps the conversation on the page in the browser, under an id of its own. */
export class ConversationKeeper {
  readonly #store: ConversationStore;
  readonly #onKept: (kept: Kept) => void;
  #id = newId();
  /** When the state on the page was kept, in milliseconds since 1970; null: it was not. */
  #keptMs: number | null = null;
  #saving: Promise<void> = Promise.resolve();

  /** @param onKept told what was kept of the conversation on the page */
  constructor(store: ConversationStore, onKept: (kept: Kept) => void) {
    this.#store = store;
    this.#onKept = onKept;
  }

  /** Id of the conversation on the page. */
  get id(): string {
    return this.#id;
  }

  /** The page now shows this conversation, to go on with it; null: a new one. */
  begin(stored: StoredConversation | null): void {
    this.#id = stored?.id ?? newId();
    this.#keptMs = stored?.changedMs ?? null;
    if (stored === null) remember(null);
  }

  /** Keeps the conversation, when what was kept before is. */
  save(conversation: Omit<StoredConversation, 'id' | 'title' | 'changedMs'>): void {
    const id = this.#id;
    this.#saving = this.#saving.then(() => this.#keep({ ...conversation, id }));
  }

  /** The conversation of this tab before it was loaded again. */
  async latest(): Promise<StoredConversation | null> {
    const id = remembered();
    return id === null ? null : this.#store.find(id);
  }

  /** In addition to the conversation kept under this id, if another tab has continued that one. */
  async #keep(conversation: Omit<StoredConversation, 'title' | 'changedMs'>): Promise<void> {
    const stored = await this.#store.head(conversation.id);
    // The page may show another one by now.
    const isShown = this.#id === conversation.id;
    const isOther = isShown && stored !== null && stored.changedMs !== this.#keptMs;
    const id = isOther ? newId() : conversation.id;
    const changedMs = Date.now();
    if (isShown) {
      this.#id = id;
      this.#keptMs = changedMs;
      remember(id);
    }
    const title = titleIn(conversation, stored);
    const kept = await this.#store.put({ ...conversation, id, title, changedMs });
    if (this.#id === id) this.#onKept(kept);
  }
}

/** Notes the conversation with which this tab goes on after a reload. Where the browser stores nothing, or is full, there is none. */
function remember(id: string | null): void {
  try {
    if (id === null) sessionStorage.removeItem(OPENED);
    else sessionStorage.setItem(OPENED, id);
  } catch {}
}

function remembered(): string | null {
  try {
    return sessionStorage.getItem(OPENED);
  } catch {
    return null;
  }
}
