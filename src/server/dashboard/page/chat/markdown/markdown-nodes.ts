import type { MarkedToken, Token, Tokens } from 'marked';
import { decodeEntities } from '../../../../../texts/entities.js';
import { el } from '../../dom.js';
import { CodeBlock } from '../code/code-block.js';
import type { Formulas } from '../math/formulas.js';
import type { MathToken } from '../math/math-syntax.js';

/** Deepest nesting of elements; deeper ones are shown as they were written. */
const MAX_DEPTH = 40;

/** Where nodes are made. */
export interface Place {
  formulas: Formulas;
  /** True where the text does not grow any more, so that its code is worth colours. */
  isWhole: boolean;
}

/**
 * Nodes for blocks of Markdown, each made as an element: no text is ever read as HTML. HTML in the text is shown as
 * text; pictures become links, since nothing is loaded from elsewhere.
 */
export function blockNodes(tokens: readonly Token[], place: Place): Node[] {
  return new NodeMaker(place).blocks(tokens, 0);
}

class NodeMaker {
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  blocks(tokens: readonly Token[], depth: number): Node[] {
    return tokens.flatMap((token) => this.#block(token as MarkedToken | MathToken, depth));
  }

  #block(token: MarkedToken | MathToken, depth: number): Node[] {
    if (depth > MAX_DEPTH) return [new Text(token.raw)];
    switch (token.type) {
      case 'space':
      case 'def':
        return [];
      case 'math':
        return [this.#place.formulas.node(token, 'div')];
      case 'code':
        return [this.#code(token)];
      case 'heading':
        return [this.#heading(token, depth)];
      case 'hr':
        return [el('hr')];
      case 'blockquote':
        return [el('blockquote', {}, this.blocks(token.tokens, depth + 1))];
      case 'list':
        return [this.#list(token, depth)];
      case 'table':
        return [this.#table(token, depth)];
      case 'paragraph':
        return [el('p', {}, this.#inlines(token.tokens, depth + 1))];
      case 'text':
        return token.tokens === undefined
          ? [new Text(decodeEntities(token.text))]
          : this.#inlines(token.tokens, depth + 1);
      case 'html':
        return [el('p', {}, [token.raw.trimEnd()])];
      default:
        return this.#inline(token, depth);
    }
  }

  #code({ text, lang = '' }: Tokens.Code): HTMLElement {
    const code = new CodeBlock(text, lang);
    if (this.#place.isWhole) code.colour(true);
    return code.element;
  }

  /** Makes a heading: those of an answer are below those of the page, h3 to h6. */
  #heading({ depth: level, tokens }: Tokens.Heading, depth: number): HTMLElement {
    const tag = (['h3', 'h4', 'h5', 'h6'] as const)[Math.min(level, 4) - 1]!;
    return el(tag, {}, this.#inlines(tokens, depth + 1));
  }

  #list({ ordered, start, items }: Tokens.List, depth: number): HTMLElement {
    const children = items.map((item) => el('li', {}, this.blocks(item.tokens, depth + 1)));
    if (!ordered) return el('ul', {}, children);
    return el('ol', { start: start === '' || start === 1 ? null : start }, children);
  }

  #table({ header, rows }: Tokens.Table, depth: number): HTMLElement {
    const cells = (tag: 'th' | 'td', row: readonly Tokens.TableCell[]) =>
      el(
        'tr',
        {},
        row.map(({ align, tokens }) => el(tag, { 'data-align': align }, this.#inlines(tokens, depth + 1))),
      );
    // A wide table scrolls by itself, also with the keyboard.
    return el('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' }, [
      el('table', {}, [
        el('thead', {}, [cells('th', header)]),
        el(
          'tbody',
          {},
          rows.map((row) => cells('td', row)),
        ),
      ]),
    ]);
  }

  #inlines(tokens: readonly Token[], depth: number): Node[] {
    return tokens.flatMap((token) => this.#inline(token as MarkedToken | MathToken, depth));
  }

  #inline(token: MarkedToken | MathToken, depth: number): Node[] {
    if (depth > MAX_DEPTH) return [new Text(token.raw)];
    switch (token.type) {
      case 'math':
        return [this.#place.formulas.node(token, 'span')];
      case 'strong':
      case 'em':
      case 'del':
        return [el(token.type, {}, this.#inlines(token.tokens, depth + 1))];
      case 'codespan':
        return [el('code', {}, [token.text])];
      case 'br':
        return [el('br')];
      case 'link':
        return link(token.href, token.raw, this.#inlines(token.tokens, depth + 1));
      case 'image':
        return link(token.href, token.raw, [new Text(token.text === '' ? token.href : token.text)]);
      case 'checkbox':
        return [new Text(token.checked ? '\u2611 ' : '\u2610 ')];
      case 'escape':
        return [new Text(token.text)];
      case 'text':
        if (token.tokens !== undefined) return this.#inlines(token.tokens, depth + 1);
        return [new Text(decodeEntities(token.text))];
      default:
        // HTML, among others, is shown as text.
        return [new Text(token.raw)];
    }
  }
}

/** Makes a link; one without a safe target is shown as it was written. */
function link(href: string, raw: string, children: readonly Node[]): Node[] {
  const target = safeLink(href);
  if (target === null) return [new Text(raw)];
  return [el('a', { href: target, target: '_blank', rel: 'noopener noreferrer nofollow' }, children)];
}

const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:']);

/**
 * Target of a link in an answer, by a scheme that runs nothing; null for any other. A text that is no full address,
 * such as a path of this server, has no target: a model does not know this server.
 */
export function safeLink(href: string): string | null {
  const url = URL.canParse(href) ? new URL(href) : null;
  return url !== null && SCHEMES.has(url.protocol) ? url.href : null;
}
