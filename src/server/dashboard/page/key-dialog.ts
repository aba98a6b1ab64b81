import { el } from './dom.js';
import type { Session } from './session.js';

const NEEDED =
  'This server answers only with an API key. It is kept in this tab and goes to this server alone.';
const NOT_NEEDED =
  'This server needs no API key. One that is entered is kept in this tab and goes to this server alone.';

/** Asks for the API key when the server wants one. The key stays in the tab. */
export class KeyDialog {
  readonly #session: Session;
  readonly #dialog: HTMLDialogElement;
  readonly #input: HTMLInputElement;
  readonly #problem: HTMLElement;
  readonly #note = el('p', { id: 'api-key-note' });

  constructor(session: Session) {
    this.#session = session;
    this.#input = el('input', {
      class: 'field',
      id: 'api-key',
      type: 'password',
      autocomplete: 'off',
      spellcheck: 'false',
      required: true,
      'aria-describedby': 'api-key-note',
    });
    this.#problem = el('p', { class: 'problem', role: 'alert' });
    const form = el(
      'form',
      { class: 'key-form', method: 'dialog' },
      [
        el('h2', { class: 'panel-title', id: 'api-key-title' }, ['API key']),
        this.#note,
        el('label', { class: 'visually-hidden', for: 'api-key' }, ['API key']),
        this.#input,
        this.#problem,
        el('div', { class: 'row' }, [
          el('button', { class: 'button', type: 'button' }, ['Not now'], {
            click: () => this.#dialog.close(),
          }),
          el('button', { class: 'button primary', type: 'submit' }, ['Use this key']),
        ]),
      ],
      { submit: (event) => this.#submit(event) },
    );
    this.#dialog = el('dialog', { 'aria-labelledby': 'api-key-title' }, [form]);
    document.body.append(this.#dialog);
    session.on('locked', ({ wasRefused }) => this.open(wasRefused));
  }

  open(wasRefused = false): void {
    this.#problem.hidden = !wasRefused;
    this.#problem.textContent = wasRefused ? 'The server does not know the key that was entered.' : '';
    this.#note.textContent = this.#session.isOpen ? NOT_NEEDED : NEEDED;
    if (this.#dialog.open) return;
    this.#input.value = '';
    this.#dialog.showModal();
    this.#input.focus();
  }

  #submit(event: SubmitEvent): void {
    event.preventDefault();
    const key = this.#input.value.trim();
    if (key === '') return;
    this.#dialog.close();
    this.#session.unlock(key);
  }
}
