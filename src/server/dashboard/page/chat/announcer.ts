import { el } from '../dom.js';

/** Most messages kept. A reader that is further behind finds the rest in the conversation itself. */
const MAX_KEPT = 20;

/** Announces texts to screen readers one after the other, each after the one before has been heard. */
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
