import { el } from '../dom.js';

const ENTRIES: readonly [mark: string, text: string][] = [
  ['queued', 'queued'],
  ['context', 'context chunk'],
  ['generating', 'generating'],
  ['paused', 'paused'],
  ['resumed', 'resuming'],
  ['done', 'done'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
];

/** Legend: the marks of the timeline with their names. Marks differ by form as well as by colour. */
export function legend(): HTMLElement {
  return el(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ENTRIES.map(([mark, text]) =>
      el('li', {}, [el('span', { class: `mark mark-${mark}`, 'aria-hidden': 'true' }), text]),
    ),
  );
}
