import { el } from '../dom.js';

/** More than a reader is behind; the rest stands in the conversation itself. */
const MAX_KEPT = 20;

/** Says things to who does not see them, one after the other, when they have heard what they are hearing. */
export class Announcer {
  readonly element = el('div', { class: 'visually-hidden', role: 'log', 'aria-label': 'New in the answer' });

  say(text: string): void {
    if (text.trim() === '') return;
    this.element.append(el('p', {}, [text]));
    while (this.element.childElementCount > MAX_KEPT) this.element.firstElementChild?.remove();
  }

  clear(): void {
    this.element.replaceChildren();
  }
}
