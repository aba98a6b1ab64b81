import { el, icon } from '../dom.js';
import type { ParameterForm } from './parameters.js';

const SEND = ['M8 13V3', 'M3.5 7.5L8 3l4.5 4.5'];
const STOP = ['M4.5 4.5h7v7h-7z'];
const SLIDERS = ['M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6', 'M10 2.8v3.4M6 9.8v3.4'];

export interface ComposerActions {
  /** Returns false where nothing was sent: the text stays. */
  send(text: string): boolean;
  stop(): void;
}

/** Box for the reader's question. Enter sends, Shift+Enter begins a line; while an answer comes the button stops it. */
export class Composer {
  readonly element: HTMLElement;
  readonly #text: HTMLTextAreaElement;
  readonly #button: HTMLButtonElement;
  readonly #actions: ComposerActions;
  #isAnswering = false;

  constructor(parameters: ParameterForm, actions: ComposerActions) {
    this.#actions = actions;
    this.#text = el(
      'textarea',
      { id: 'prompt', rows: '1', placeholder: 'Write a message', 'aria-label': 'Message' },
      [],
      {
        input: () => this.#fit(),
        keydown: (event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          this.#send();
        },
      },
    );
    this.#button = el('button', { class: 'button primary icon', type: 'button' }, [], {
      click: () => (this.#isAnswering ? actions.stop() : this.#send()),
    });
    parameters.element.hidden = true;
    const toggle = el(
      'button',
      {
        class: 'button quiet',
        type: 'button',
        'aria-expanded': 'false',
        'aria-controls': parameters.element.id,
      },
      [icon(...SLIDERS), 'Parameters'],
      {
        click: () => {
          parameters.element.hidden = !parameters.element.hidden;
        },
      },
    );
    // The form is also opened from elsewhere, where a field in it is wrong.
    new MutationObserver(() => {
      toggle.setAttribute('aria-expanded', String(!parameters.element.hidden));
    }).observe(parameters.element, { attributes: true, attributeFilter: ['hidden'] });
    this.element = el('div', { class: 'composer' }, [
      parameters.element,
      el('div', { class: 'composer-box' }, [
        this.#text,
        el('div', { class: 'composer-row' }, [
          toggle,
          el('span', { class: 'composer-hint' }, ['Shift + Enter for a new line']),
          this.#button,
        ]),
      ]),
    ]);
    this.setAnswering(false);
  }

  setAnswering(isAnswering: boolean): void {
    this.#isAnswering = isAnswering;
    const label = isAnswering ? 'Stop' : 'Send';
    this.#button.title = isAnswering ? 'Stop (Esc)' : 'Send (Enter)';
    this.#button.setAttribute('aria-label', label);
    this.#button.replaceChildren(icon(...(isAnswering ? STOP : SEND)));
  }

  focus(): void {
    this.#text.focus();
  }

  #send(): void {
    const text = this.#text.value.trim();
    if (text === '' || this.#isAnswering) return;
    if (!this.#actions.send(text)) return;
    this.#text.value = '';
    this.#fit();
  }

  /** Makes the box as high as its text, within the limits of the style sheet. */
  #fit(): void {
    this.#text.style.height = 'auto';
    this.#text.style.height = `${this.#text.scrollHeight}px`;
  }
}
