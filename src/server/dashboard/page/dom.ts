type Child = Node | string | null | false;

type Listeners = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

/** Attributes by name: true writes an empty one, false and null write none. `on` holds listeners. */
export type Attributes = Readonly<Record<string, string | number | boolean | null>>;

/**
 * Makes an element. Text stays text: nothing given here is ever read as HTML. Styles are set by `element.style`, since
 * the page's policy refuses style attributes.
 */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  children: readonly Child[] = [],
  on: Listeners = {},
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== false) element.append(child);
  for (const [name, listener] of Object.entries(on)) {
    element.addEventListener(name, listener as EventListener);
  }
  return element;
}

/** Writes a text where it is another: each change costs layout, and screen readers say it. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = 'http://www.w3.org/2000/svg';

/** A line drawing of 16 by 16 units, hidden from screen readers: the element next to it says the same in words. */
export function icon(...paths: readonly string[]): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  const drawn = { viewBox: '0 0 16 16', width: '16', height: '16', fill: 'none', stroke: 'currentColor' };
  const strokes = { 'stroke-width': '1.5', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' };
  for (const [name, value] of Object.entries({ ...drawn, ...strokes, 'aria-hidden': 'true' })) {
    svg.setAttribute(name, value);
  }
  for (const d of paths) {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', d);
    svg.append(path);
  }
  return svg;
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no element #${id}.`);
  return element;
}
