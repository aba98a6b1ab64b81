import { el } from '../dom.js';

/** View of the reader's question, which can be changed and sent again. */
export class QuestionView {
  readonly element: HTMLElement;
  readonly #resend: (text: string) => void;
  #text: string;

  constructor(text: string, resend: (text: string) => void) {
    this.#text = text;
    this.#resend = resend;
    this.element = el('div', { class: 'question' });
    this.#show();
  }

  #show(): HTMLButtonElement {
    const edit = el('button', { class: 'button quiet', type: 'button' }, ['Edit'], {
      click: () => this.#edit(),
    });
    this.element.replaceChildren(el('div', { class: 'question-text' }, [this.#text]), edit);
    return edit;
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
      if (text === '') return;
      this.#text = text;
      this.#show();
      this.#resend(text);
    };
    this.element.replaceChildren(
      area,
      el('div', { class: 'question-row' }, [
        el('button', { class: 'button', type: 'button' }, ['Cancel'], { click: () => this.#show().focus() }),
        el('button', { class: 'button primary', type: 'button' }, ['Send'], { click: send }),
      ]),
    );
    area.focus();
  }
}
