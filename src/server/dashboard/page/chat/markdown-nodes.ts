import type { MarkedToken, Token, Tokens } from 'marked';
import { decodeEntities } from '../../../../texts/entities.js';
import { el } from '../dom.js';
import { codeBlock } from './code-block.js';

/** Deepest nesting of elements; deeper ones are shown as they were written. */
const MAX_DEPTH = 40;

/**
 * Nodes for blocks of Markdown, each made as an element: no text is ever read as HTML. HTML in the text is shown as
 * text; pictures become links, since nothing is loaded from elsewhere.
 */
export function blockNodes(tokens: readonly Token[], depth = 0): Node[] {
  return tokens.flatMap((token) => block(token as MarkedToken, depth));
}

function block(token: MarkedToken, depth: number): Node[] {
  if (depth > MAX_DEPTH) return [new Text(token.raw)];
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'code':
      return [codeBlock(token.text, token.lang ?? '').element];
    case 'heading':
      return [heading(token, depth)];
    case 'hr':
      return [el('hr')];
    case 'blockquote':
      return [el('blockquote', {}, blockNodes(token.tokens, depth + 1))];
    case 'list':
      return [list(token, depth)];
    case 'table':
      return [table(token, depth)];
    case 'paragraph':
      return [el('p', {}, inlineNodes(token.tokens, depth + 1))];
    case 'text':
      return token.tokens === undefined
        ? [new Text(decodeEntities(token.text))]
        : inlineNodes(token.tokens, depth + 1);
    case 'html':
      return [el('p', {}, [token.raw.trimEnd()])];
    default:
      return inline(token, depth);
  }
}

/** Makes a heading: those of an answer are below those of the page, h3 to h6. */
function heading({ depth: level, tokens }: Tokens.Heading, depth: number): HTMLElement {
  const tag = (['h3', 'h4', 'h5', 'h6'] as const)[Math.min(level, 4) - 1]!;
  return el(tag, {}, inlineNodes(tokens, depth + 1));
}

function list({ ordered, start, items }: Tokens.List, depth: number): HTMLElement {
  const children = items.map((item) => el('li', {}, blockNodes(item.tokens, depth + 1)));
  if (!ordered) return el('ul', {}, children);
  return el('ol', { start: start === '' || start === 1 ? null : start }, children);
}

function table({ header, rows }: Tokens.Table, depth: number): HTMLElement {
  const cells = (tag: 'th' | 'td', row: readonly Tokens.TableCell[]) =>
    el(
      'tr',
      {},
      row.map(({ align, tokens }) => el(tag, { 'data-align': align }, inlineNodes(tokens, depth + 1))),
    );
  // A wide table scrolls by itself, also with the keyboard.
  return el('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Table' }, [
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

function inlineNodes(tokens: readonly Token[], depth: number): Node[] {
  return tokens.flatMap((token) => inline(token as MarkedToken, depth));
}

function inline(token: MarkedToken, depth: number): Node[] {
  if (depth > MAX_DEPTH) return [new Text(token.raw)];
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return [el(token.type, {}, inlineNodes(token.tokens, depth + 1))];
    case 'codespan':
      return [el('code', {}, [token.text])];
    case 'br':
      return [el('br')];
    case 'link':
      return link(token.href, token.raw, inlineNodes(token.tokens, depth + 1));
    case 'image':
      return link(token.href, token.raw, [new Text(token.text === '' ? token.href : token.text)]);
    case 'checkbox':
      return [new Text(token.checked ? '\u2611 ' : '\u2610 ')];
    case 'escape':
      return [new Text(token.text)];
    case 'text':
      if (token.tokens !== undefined) return inlineNodes(token.tokens, depth + 1);
      return [new Text(decodeEntities(token.text))];
    default:
      // HTML, among others, is shown as text.
      return [new Text(token.raw)];
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
