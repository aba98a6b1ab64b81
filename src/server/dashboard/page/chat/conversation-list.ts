import { el } from '../dom.js';
import { plural } from '../formation/words.js';
import { menu } from '../menu.js';
import { exportedFile, imported } from './conversation-file.js';
import { type Found, MAX_SOUGHT, search } from './conversation-search.js';
import { type ConversationStore, MAX_CONVERSATIONS, type Merged } from './conversation-store.js';
import { fileNameOf, markdownOf } from './markdown-export.js';
import { MessageTree } from './message-tree.js';
import type { StoredConversation } from './stored-conversation.js';

/** Bytes of the longest file that is imported: all files that are kept fit in, and the texts of conversations. */
const LONGEST_FILE = 250e6;

export interface ListActions {
  open(conversation: StoredConversation): void;
  /** Called when a conversation was deleted, which may be the one on the page. */
  removed(id: string): void;
  /** Id of the conversation on the page. */
  shown(): string;
}

/**
 * A menu of the conversations of this browser: they can be searched, opened again, renamed, deleted and exported, and others
 * imported.
 */
export class ConversationList {
  readonly element: HTMLDetailsElement;
  readonly #store: ConversationStore;
  readonly #actions: ListActions;
  readonly #sought = el(
    'input',
    {
      class: 'field',
      type: 'search',
      placeholder: 'Search',
      'aria-label': 'Search conversations',
      maxlength: MAX_SOUGHT,
    },
    [],
    { input: () => void this.#show() },
  );
  readonly #items = el('ul', { class: 'chats-items' });
  readonly #said = el('div', { class: 'chats-said', role: 'status', hidden: true });
  readonly #problem = el('p', { class: 'problem', role: 'alert', hidden: true });

  constructor(store: ConversationStore, actions: ListActions) {
    this.#store = store;
    this.#actions = actions;
    const file = el('input', { type: 'file', accept: 'application/json,.json', hidden: true }, [], {
      change: () => void this.#import(file),
    });
    const foot = el('div', { class: 'row' }, [
      button('This chat as Markdown', () => void this.#exportShown()),
      button('Export all', () => void this.#export()),
      button('Import', () => file.click()),
      file,
    ]);
    const content = [this.#sought, this.#items, this.#said, this.#problem, foot];
    this.element = menu({ name: 'Conversations', kind: 'chats' }, content, () => {
      this.#say(null);
      this.#sought.value = '';
      void this.#show();
    });
  }

  async #show(): Promise<void> {
    const all = await this.#store.list();
    const found = search(all, this.#sought.value);
    this.#sought.hidden = all.length === 0;
    if (found.length === 0) {
      const none = all.length === 0 ? 'None yet. They are kept in this browser.' : 'Nothing is found.';
      this.#items.replaceChildren(el('li', { class: 'chats-none' }, [none]));
      return;
    }
    this.#items.replaceChildren(...found.map((one) => this.#item(one)));
  }

  #item({ conversation, place }: Found): HTMLElement {
    const { title, changedMs } = conversation;
    const open = el(
      'button',
      { class: 'chats-open', type: 'button' },
      [el('span', {}, [title]), el('small', {}, [place?.words ?? new Date(changedMs).toLocaleString()])],
      {
        click: () => {
          this.element.open = false;
          void this.#open(conversation.id, place?.message ?? null);
        },
      },
    );
    const item = el('li', {}, [
      open,
      button('Rename', () => item.replaceChildren(...this.#renaming(conversation)), `Rename ${title}`),
      button('Delete', () => void this.#remove(conversation), `Delete ${title}`),
    ]);
    return item;
  }

  /** @param message the one whose branch is shown; null: that of the last time */
  async #open(id: string, message: string | null): Promise<void> {
    const found = await this.#store.find(id);
    if (found === null) return;
    const leaf = message === null ? found.leaf : new MessageTree(found.messages).leafOf(message);
    this.#actions.open({ ...found, leaf });
  }

  /** What an item has in place of its title while that is changed. */
  #renaming(conversation: StoredConversation): Node[] {
    const input = el('input', { class: 'field', 'aria-label': 'Title', maxlength: '200' });
    input.value = conversation.title;
    const form = el('form', { class: 'chats-title' }, [input, el('button', { class: 'button' }, ['Save'])], {
      submit: async (event) => {
        event.preventDefault();
        await this.#store.put({ ...conversation, title: input.value.trim() || conversation.title });
        await this.#show();
      },
      keydown: (event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        void this.#show();
      },
    });
    setTimeout(() => input.select());
    return [form];
  }

  async #remove({ id, title }: StoredConversation): Promise<void> {
    const whole = await this.#store.find(id);
    await this.#store.remove(id);
    this.#actions.removed(id);
    const undo = button('Undo', async () => {
      if (whole !== null) await this.#store.put(whole);
      this.#say(null);
      await this.#show();
    });
    this.#say([`Deleted \u201c${title}\u201d.`, undo]);
    await this.#show();
  }

  async #export(): Promise<void> {
    const day = new Date().toISOString().slice(0, 10);
    save(await exportedFile(this.#whole()), `skein-conversations-${day}.json`);
  }

  async #exportShown(): Promise<void> {
    const shown = await this.#store.head(this.#actions.shown());
    if (shown === null) return this.#say(['This chat has no answer yet.']);
    save(new Blob([markdownOf(shown)], { type: 'text/markdown' }), fileNameOf(shown.title));
  }

  /** All conversations with their files, one at a time in memory. */
  async *#whole(): AsyncGenerator<StoredConversation> {
    for (const { id } of await this.#store.list()) {
      const found = await this.#store.find(id);
      if (found !== null) yield found;
    }
  }

  async #import(input: HTMLInputElement): Promise<void> {
    const [file] = input.files ?? [];
    input.value = '';
    if (file === undefined) return;
    this.#say(null);
    try {
      if (file.size > LONGEST_FILE) throw new Error('This file is longer than 250 MB.');
      this.#say([importWords(await this.#store.merge(imported(await file.text(), Date.now())))]);
    } catch (error) {
      this.#problem.textContent = error instanceof Error ? error.message : String(error);
      this.#problem.hidden = false;
    }
    await this.#show();
  }

  /** Says what was done; null: nothing. */
  #say(words: (string | Node)[] | null): void {
    this.#problem.hidden = true;
    this.#said.hidden = words === null;
    this.#said.replaceChildren(...(words ?? []));
  }
}

/** Gives the reader a file. */
function save(file: Blob, name: string): void {
  const url = URL.createObjectURL(file);
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function button(text: string, click: () => void, label?: string): HTMLButtonElement {
  const attributes = { class: 'button quiet', type: 'button', 'aria-label': label ?? null };
  return el('button', attributes, [text], { click });
}

/** What is said of a file that was imported. */
export function importWords({ taken, here, dropped }: Merged): string {
  return [
    `${plural(taken, 'conversation')} imported.`,
    here === 0
      ? ''
      : `${here} ${here === 1 ? 'was' : 'were'} here already, in the same state or a later one.`,
    dropped === 0
      ? ''
      : `The latest ${MAX_CONVERSATIONS} are kept: ${plural(dropped, 'older one')} left out.`,
  ]
    .filter(Boolean)
    .join(' ');
}
