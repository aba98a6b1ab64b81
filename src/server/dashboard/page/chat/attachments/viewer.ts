import { el } from '../../dom.js';
import { type Attachment, isPicture, sizeWords } from './attachment.js';
import { imageOf } from './thumbnail.js';

/** Shows one attachment in full, over the page: a picture, or the text that is sent of a file. */
export class AttachmentViewer {
  readonly #title = el('h2', { class: 'panel-title', id: 'viewer-title' });
  readonly #size = el('p', { class: 'viewer-size' });
  readonly #body = el('div', {
    class: 'viewer-body',
    tabindex: '0',
    role: 'group',
    'aria-labelledby': 'viewer-title',
  });
  readonly #dialog: HTMLDialogElement;

  constructor() {
    const close = el('button', { class: 'button', type: 'button' }, ['Close'], {
      click: () => this.#dialog.close(),
    });
    const words = el('div', { class: 'viewer-words' }, [this.#title, this.#size]);
    this.#dialog = el(
      'dialog',
      { class: 'viewer', 'aria-labelledby': 'viewer-title' },
      [el('div', { class: 'viewer-head' }, [words, close]), this.#body],
      {
        // Outside of what it holds.
        click: ({ target }) => target === this.#dialog && this.#dialog.close(),
        close: () => this.#body.replaceChildren(),
      },
    );
    document.body.append(this.#dialog);
  }

  open(attachment: Attachment): void {
    this.#title.textContent = attachment.name;
    this.#size.textContent = isPicture(attachment)
      ? `${attachment.width} \u00d7 ${attachment.height} pixels, ${sizeWords(attachment)}`
      : sizeWords(attachment);
    this.#body.replaceChildren(shownOf(attachment));
    this.#dialog.showModal();
    this.#body.scrollTop = 0;
  }
}

function shownOf(attachment: Attachment): Element {
  if (!isPicture(attachment)) return el('pre', {}, [attachment.content ?? '']);
  return imageOf(attachment, attachment.name) ?? el('p', {}, ['It is not kept any more.']);
}
