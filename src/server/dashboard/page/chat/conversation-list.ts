import { el } from '../dom.js';
import { type ConversationStore, exported, imported, type StoredConversation } from './conversation-store.js';

/** Bytes of the longest file that is imported. */
const LONGEST_FILE = 50e6;

export interface ListActions {
  open(conversation: StoredConversation): void;
  /** Called when the conversation on the page was deleted. */
  removed(id: string): void;
}

/** A menu of the conversations of this browser: each can be opened again or deleted, all of them exported, others imported. */
export class ConversationList {
  readonly element: HTMLDetailsElement;
  readonly #store: ConversationStore;
  readonly #actions: ListActions;
  readonly #items = el('ul', { class: 'chats-items' });
  readonly #problem = el('p', { class: 'problem', role: 'alert', hidden: true });

  constructor(store: ConversationStore, actions: ListActions) {
    this.#store = store;
    this.#actions = actions;
    const file = el('input', { type: 'file', accept: 'application/json,.json', hidden: true }, [], {
      change: () => void this.#import(file),
    });
    const button = (text: string, click: () => void) =>
      el('button', { class: 'button quiet', type: 'button' }, [text], { click });
    this.element = el(
      'details',
      { class: 'chats' },
      [
        el('summary', { class: 'button quiet' }, ['Conversations']),
        el('div', { class: 'menu chats-menu' }, [
          this.#items,
          this.#problem,
          el('div', { class: 'row' }, [
            button('Export all', () => void this.#export()),
            button('Import', () => file.click()),
            file,
          ]),
        ]),
      ],
      {
        toggle: () => {
          if (this.element.open) void this.#show();
        },
      },
    ) as HTMLDetailsElement;
  }

  async #show(): Promise<void> {
    const all = await this.#store.list();
    if (all.length === 0) {
      this.#items.replaceChildren(
        el('li', { class: 'chats-none' }, ['None yet. They are kept in this browser.']),
      );
      return;
    }
    this.#items.replaceChildren(...all.map((one) => this.#item(one)));
  }

  #item(conversation: StoredConversation): HTMLElement {
    const { id, title, changedMs } = conversation;
    const open = el(
      'button',
      { class: 'chats-open', type: 'button' },
      [el('span', {}, [title]), el('small', {}, [new Date(changedMs).toLocaleString()])],
      {
        click: () => {
          this.element.open = false;
          this.#actions.open(conversation);
        },
      },
    );
    const remove = el(
      'button',
      { class: 'button quiet', type: 'button', 'aria-label': `Delete ${title}` },
      ['Delete'],
      {
        click: async () => {
          await this.#store.remove(id);
          this.#actions.removed(id);
          await this.#show();
        },
      },
    );
    return el('li', {}, [open, remove]);
  }

  async #export(): Promise<void> {
    const blob = new Blob([exported(await this.#store.list())], { type: 'application/json' });
    const url = URL.createObjectURL(blob);
    const day = new Date().toISOString().slice(0, 10);
    el('a', { href: url, download: `skein-conversations-${day}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async #import(input: HTMLInputElement): Promise<void> {
    const [file] = input.files ?? [];
    input.value = '';
    if (file === undefined) return;
    try {
      if (file.size > LONGEST_FILE) throw new Error('This file is longer than 50 MB.');
      for (const one of imported(await file.text())) await this.#store.put(one);
      this.#problem.hidden = true;
    } catch (error) {
      this.#problem.textContent = error instanceof Error ? error.message : String(error);
      this.#problem.hidden = false;
    }
    await this.#show();
  }
}
