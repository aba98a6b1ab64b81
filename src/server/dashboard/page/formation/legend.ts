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

/** Marks of the timeline with their names; form tells as much as colour. */
export function legend(): HTMLElement {
  return el(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ENTRIES.map(([mark, text]) =>
      el('li', {}, [el('span', { class: `mark mark-${mark}`, 'aria-hidden': 'true' }), text]),
    ),
  );
}
