import { el, icon } from '../../dom.js';
import { type Attachment, sizeWords } from './attachment.js';
import { wordsOf } from './attachment-list.js';
import { AttachmentProblem, quoted } from './attachment-problem.js';
import { ATTACHMENT_LIMITS, tooMuch } from './limits.js';
import { thumbnail } from './thumbnail.js';

const CROSS = ['M4 4l8 8M12 4l-8 8'];
const MORE = `A question may have ${ATTACHMENT_LIMITS.maxFiles} files.`;

export interface TrayServices {
  /** Reads a file. @throws AttachmentProblem where it is not taken */
  read(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Attachment>;
  /** Attachments that are sent besides, of the conversation so far. */
  others(): readonly Attachment[];
  /** Puts the focus where the reader writes. */
  focusText(): void;
}

interface Item {
  element: HTMLElement;
  name: string;
  /** null: it is still read. */
  attachment: Attachment | null;
  reading: AbortController;
}

/** The files that go with the next question: they are shown while they are read, and can be taken out. */
export class AttachmentTray {
  readonly element: HTMLElement;
  readonly #list = el('ul', { class: 'tray-items', 'aria-label': 'Attached files', hidden: true });
  readonly #problem = el('p', { class: 'tray-problem', role: 'alert', hidden: true });
  readonly #said = el('p', { class: 'visually-hidden', role: 'status' });
  readonly #services: TrayServices;
  #items: Item[] = [];
  /** Files are read one after the other. */
  #queue: Promise<void> = Promise.resolve();

  constructor(services: TrayServices) {
    this.#services = services;
    this.element = el('div', { class: 'tray' }, [this.#list, this.#problem, this.#said]);
  }

  /** What is attached, as far as it is read. */
  get attachments(): Attachment[] {
    return this.#items.flatMap(({ attachment }) => (attachment === null ? [] : [attachment]));
  }

  /** Why the files cannot be sent at present; null: they can. */
  whyNot(): string | null {
    const reading = this.#items.find(({ attachment }) => attachment === null);
    if (reading !== undefined) return `${quoted(reading.name)} is still being read.`;
    return tooMuch([...this.#services.others(), ...this.attachments]);
  }

  add(files: readonly File[]): void {
    this.complain(null);
    const room = ATTACHMENT_LIMITS.maxFiles - this.#items.length;
    if (files.length > room) this.complain(MORE);
    for (const file of files.slice(0, Math.max(0, room))) {
      const { item, progress } = this.#begin(file.name);
      this.#queue = this.#queue.then(() => this.#read(file, item, progress));
    }
  }

  /** Shows why files are not taken or not sent; null: nothing. */
  complain(sentence: string | null): void {
    this.#problem.textContent = sentence ?? '';
    this.#problem.hidden = sentence === null;
  }

  clear(): void {
    for (const { reading } of this.#items) reading.abort();
    this.#items = [];
    this.#list.replaceChildren();
    this.#list.hidden = true;
    this.complain(null);
  }

  #begin(name: string): { item: Item; progress: HTMLProgressElement } {
    const progress = el('progress', { max: '1', 'aria-label': `Reading ${name}` });
    const words = el('span', { class: 'attachment-words' }, [
      el('span', { class: 'attachment-name' }, [name]),
      progress,
    ]);
    const element = el('li', { class: 'tray-item' }, [
      el('span', { class: 'thumbnail-sign' }),
      words,
      this.#removal(name, () => this.#remove(item)),
    ]);
    const item: Item = { element, name, attachment: null, reading: new AbortController() };
    this.#items.push(item);
    this.#list.append(element);
    this.#list.hidden = false;
    element.scrollIntoView({ block: 'nearest' });
    return { item, progress };
  }

  #removal(name: string, remove: () => void): HTMLButtonElement {
    const attributes = {
      class: 'button quiet icon',
      type: 'button',
      title: 'Remove',
      'aria-label': `Remove ${name}`,
    };
    return el('button', attributes, [icon(...CROSS)], {
      click: remove,
      keydown: (event) => {
        if (event.key !== 'Delete' && event.key !== 'Backspace') return;
        event.preventDefault();
        remove();
      },
    });
  }

  async #read(file: File, item: Item, progress: HTMLProgressElement): Promise<void> {
    const { signal } = item.reading;
    if (signal.aborted) return;
    const onProgress = (share: number) => {
      progress.value = share;
    };
    try {
      const attachment = await this.#services.read(file, onProgress, signal);
      if (signal.aborted) return;
      const problem = tooMuch([...this.#services.others(), ...this.attachments, attachment]);
      if (problem !== null) throw new AttachmentProblem(`${quoted(file.name)} is not attached. ${problem}`);
      item.attachment = attachment;
      const [sign, words] = item.element.children;
      sign!.replaceWith(thumbnail(attachment));
      words!.replaceWith(wordsOf(attachment));
      this.#said.textContent = `${file.name} attached, ${sizeWords(attachment)}`;
    } catch (error) {
      if (signal.aborted) return;
      this.#take(item);
      const isKnown = error instanceof AttachmentProblem;
      this.complain(isKnown ? error.message : `${quoted(file.name)} cannot be read any more.`);
    }
  }

  /** Takes a file out at the reader's wish; the focus goes to the next one. */
  #remove(item: Item): void {
    const next = item.element.nextElementSibling ?? item.element.previousElementSibling;
    item.reading.abort();
    this.#take(item);
    this.complain(null);
    this.#said.textContent = `${item.name} removed`;
    const button = next?.querySelector('button');
    if (button instanceof HTMLButtonElement) button.focus();
    else this.#services.focusText();
  }

  #take(item: Item): void {
    item.element.remove();
    this.#items = this.#items.filter((one) => one !== item);
    this.#list.hidden = this.#items.length === 0;
  }
}
