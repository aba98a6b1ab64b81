import { el } from '../dom.js';

/** Share of the context from which the reader is told that it is nearly full. */
const NEARLY_FULL = 0.9;

/** Shows how much of the model's context the conversation takes. */
export class ContextMeter {
  readonly element = el('div', { class: 'context-meter', hidden: true });
  readonly #bar = el('meter', { 'aria-label': 'Context used', min: '0' });
  readonly #text = el('span');

  constructor() {
    this.element.append(this.#bar, this.#text);
  }

  /** @param used tokens of the conversation; null: not known. @param limit tokens of the context; null: not known */
  show(used: number | null, limit: number | null): void {
    this.element.hidden = used === null || limit === null;
    if (used === null || limit === null) return;
    this.#bar.max = limit;
    this.#bar.high = NEARLY_FULL * limit;
    this.#bar.optimum = 0;
    this.#bar.value = used;
    this.#text.textContent = contextWords(used, limit);
  }
}

/** Words about the context used. */
export function contextWords(used: number, limit: number): string {
  const share = Math.min(1, used / limit);
  const text = `Context: ${used.toLocaleString('en')} of ${limit.toLocaleString('en')} tokens (${Math.round(100 * share)} %)`;
  return share < NEARLY_FULL ? text : `${text}. Nearly full: begin a new chat`;
}
