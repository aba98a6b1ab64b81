import { el } from '../dom.js';
import type { Attachment } from './attachments/attachment.js';
import { attachmentList } from './attachments/attachment-list.js';

export interface QuestionActions {
  /** Sends the question again, with other words and the same attachments. */
  resend(text: string): void;
  open(attachment: Attachment): void;
}

/** View of the reader's question with its attachments. It can be changed and sent again, as another version. */
export class QuestionView {
  readonly element: HTMLElement;
  readonly #attached: readonly HTMLElement[];
  readonly #mayBeEmpty: boolean;
  readonly #resend: (text: string) => void;
  readonly #text: string;
  #versions: HTMLElement | null = null;

  constructor(text: string, attachments: readonly Attachment[], { resend, open }: QuestionActions) {
    this.#text = text;
    this.#resend = resend;
    this.#mayBeEmpty = attachments.length > 0;
    this.#attached = this.#mayBeEmpty ? [attachmentList(attachments, open)] : [];
    this.element = el('div', { class: 'question' });
    this.#show();
  }

  #show(): HTMLButtonElement {
    const edit = el('button', { class: 'button quiet', type: 'button' }, ['Edit'], {
      click: () => this.#edit(),
    });
    const text = this.#text === '' ? [] : [el('div', { class: 'question-text' }, [this.#text])];
    const versions = this.#versions === null ? [] : [this.#versions];
    this.element.replaceChildren(...this.#attached, ...text, ...versions, edit);
    return edit;
  }

  /** Shows which version of the question this is; null: there is one alone. */
  showVersions(versions: HTMLElement | null): void {
    this.#versions?.remove();
    this.#versions = versions;
    if (versions !== null) this.element.querySelector(':scope > .button')?.before(versions);
  }

  #edit(): void {
    const rows = Math.min(10, this.#text.split('\n').length + 1);
    const area = el('textarea', { class: 'field', rows, 'aria-label': 'Edit the message' }, [], {
      keydown: (event) => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          this.#show().focus();
        } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          send();
        }
      },
    });
    area.value = this.#text;
    const send = () => {
      const text = area.value.trim();
      if (text === '' && !this.#mayBeEmpty) return;
      this.#show();
      this.#resend(text);
    };
    this.element.replaceChildren(
      ...this.#attached,
      area,
      el('div', { class: 'question-row' }, [
        el('button', { class: 'button', type: 'button' }, ['Cancel'], { click: () => this.#show().focus() }),
        el('button', { class: 'button primary', type: 'button' }, ['Send'], { click: send }),
      ]),
    );
    area.focus();
  }
}
