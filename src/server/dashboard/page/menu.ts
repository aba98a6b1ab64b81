import { el } from './dom.js';

/**
 * A button that opens a menu below it. Escape and a click elsewhere close it again.
 *
 * @param opened called each time that it opens
 */
export function menu(
  { name, kind }: { name: string; kind: string },
  content: readonly Node[],
  opened: () => void,
): HTMLDetailsElement {
  const summary = el('summary', { class: 'button quiet' }, [name]);
  const element = el(
    'details',
    { class: kind },
    [summary, el('div', { class: `menu ${kind}-menu` }, content)],
    {
      toggle: () => element.open && opened(),
      keydown: (event) => {
        if (event.key !== 'Escape' || event.defaultPrevented || !element.open) return;
        event.preventDefault();
        element.open = false;
        summary.focus();
      },
    },
  );
  document.addEventListener('click', (event) => {
    // What was clicked may be gone from the page by now, so the way of the click is what counts.
    if (!event.composedPath().includes(element)) element.open = false;
  });
  return element;
}
