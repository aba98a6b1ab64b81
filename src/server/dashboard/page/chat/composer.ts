import { el, icon } from '../dom.js';
import type { Attachment } from './attachments/attachment.js';
import { AttachmentTray, type TrayServices } from './attachments/attachment-tray.js';
import { onGivenFiles } from './attachments/given-files.js';
import type { ParameterForm } from './parameters.js';

const SEND = ['M8 13V3', 'M3.5 7.5L8 3l4.5 4.5'];
const STOP = ['M4.5 4.5h7v7h-7z'];
const CLIP = ['M13 7.2l-5.4 5.4a3.2 3.2 0 0 1-4.6-4.6l5.7-5.6a2.1 2.1 0 0 1 3 3L6 11a1 1 0 0 1-1.5-1.4l5-5'];
const SLIDERS = ['M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6', 'M10 2.8v3.4M6 9.8v3.4'];

export interface ComposerActions {
  /** Returns false where nothing was sent: the text and the files stay. */
  send(text: string, attachments: readonly Attachment[]): boolean;
  stop(): void;
  /** The sentence that keeps these from being sent; null: they may. */
  whyNot(attachments: readonly Attachment[]): string | null;
}

/** Box for the reader's question and the files that go with it. Enter sends, Shift+Enter begins a line; while an answer comes the button stops it. */
export class Composer {
  readonly element: HTMLElement;
  readonly #text: HTMLTextAreaElement;
  readonly #button: HTMLButtonElement;
  readonly #actions: ComposerActions;
  readonly #tray: AttachmentTray;
  #isAnswering = false;

  /** @param tools stands in the row of buttons */
  constructor(
    parameters: ParameterForm,
    files: Omit<TrayServices, 'focusText'>,
    tools: HTMLElement,
    actions: ComposerActions,
  ) {
    this.#actions = actions;
    this.#tray = new AttachmentTray({ ...files, focusText: () => this.focus() });
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
    this.element = el('div', { class: 'composer' }, [
      parameters.element,
      el('div', { class: 'composer-box' }, [
        this.#tray.element,
        this.#text,
        el('div', { class: 'composer-row' }, [
          ...this.#choice(),
          toggleOf(parameters),
          tools,
          el('span', { class: 'composer-hint' }, ['Shift + Enter for a new line']),
          this.#button,
        ]),
      ]),
    ]);
    onGivenFiles(this.#text, this.element, (given) => this.#take(given));
    this.setAnswering(false);
  }

  /** The button that opens the browser's choice of files, and what it opens. */
  #choice(): HTMLElement[] {
    const input = el('input', { type: 'file', multiple: true, hidden: true }, [], {
      change: () => {
        this.#take([...(input.files ?? [])]);
        input.value = '';
      },
    });
    const label = 'Attach pictures, PDF or text files';
    const attributes = { class: 'button quiet icon', type: 'button', title: label, 'aria-label': label };
    return [el('button', attributes, [icon(...CLIP)], { click: () => input.click() }), input];
  }

  #take(files: readonly File[]): void {
    this.#tray.add(files);
    this.focus();
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
    const { attachments } = this.#tray;
    const isEmpty = text === '' && attachments.length === 0;
    if (isEmpty || this.#isAnswering) return;
    const problem = this.#tray.whyNot() ?? this.#actions.whyNot(attachments);
    this.#tray.complain(problem);
    if (problem !== null || !this.#actions.send(text, attachments)) return;
    this.#tray.clear();
    this.#text.value = '';
    this.#fit();
  }

  /** Makes the box as high as its text, within the limits of the style sheet. */
  #fit(): void {
    this.#text.style.height = 'auto';
    this.#text.style.height = `${this.#text.scrollHeight}px`;
  }
}

/** The button that shows the parameters, which it hides at first. */
function toggleOf(parameters: ParameterForm): HTMLButtonElement {
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
  return toggle;
}
