import { el } from '../dom.js';

/** Names of the marks of a picture, which differ by form as well as by colour. */
export function legend(entries: readonly (readonly [mark: string, text: string])[]): HTMLElement {
  return el(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    entries.map(([mark, text]) =>
      el('li', {}, [el('span', { class: `mark mark-${mark}`, 'aria-hidden': 'true' }), text]),
    ),
  );
}
