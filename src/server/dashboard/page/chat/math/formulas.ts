import { el } from '../../dom.js';
import type { MathToken } from './math-syntax.js';

type Drawing = typeof import('./katex-drawing.js');

/** Characters of all formulas of one answer that are drawn; the others stay text. */
const MAX_IN_ANSWER = 100_000;
/** Formulas that are kept: an answer that grows has its last block drawn again and again. */
const MAX_KEPT = 300;

let drawing: Drawing | null = null;
let loading: Promise<void> | null = null;
const kept = new Map<string, Node>();

/** Makes the formulas of one answer. The first of all loads what draws them; until then they are shown as they were written. */
export class Formulas {
  /** What is left of the bound, to come back to where nodes are made again. */
  left = MAX_IN_ANSWER;

  /** @param element `div` in lines of its own, `span` within a paragraph */
  node(token: MathToken, element: 'div' | 'span'): Node {
    const { tex, isDisplay } = token;
    const raw = token.raw.trim();
    if (tex.length > this.left) return new Text(raw);
    this.left -= tex.length;
    // A wide formula scrolls by itself, also with the keyboard.
    const wide = { class: 'math math-display', tabindex: '0', role: 'group', 'aria-label': 'Formula' };
    const made = el(element, isDisplay ? wide : { class: 'math' }, [raw]);
    made.dataset.tex = raw;
    if (drawing !== null) show(made, tex, isDisplay, drawing);
    else void load().then(() => drawing && show(made, tex, isDisplay, drawing));
    return made;
  }
}

/** Loads what draws formulas, with its styles and fonts; where it does not come, formulas stay text, and the next one tries again. */
function load(): Promise<void> {
  loading ??= (async () => {
    const address = (file: string) => new URL(`dashboard/${file}`, document.baseURI).href;
    try {
      const styles = el('link', { rel: 'stylesheet', href: address('math.css') });
      document.head.append(styles);
      drawing = (await import(address('math.js'))) as Drawing;
    } catch {
      loading = null;
    }
  })();
  return loading;
}

function show(element: HTMLElement, tex: string, isDisplay: boolean, { formulaNodes }: Drawing): void {
  const key = `${isDisplay}${tex}`;
  let nodes = kept.get(key);
  if (nodes === undefined) {
    try {
      nodes = formulaNodes(tex, isDisplay);
    } catch {
      nodes = new Text(element.dataset.tex);
    }
    kept.set(key, nodes);
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
  }
  element.replaceChildren(nodes.cloneNode(true));
}
