import type { MarkedToken, Token } from 'marked';
import { decodeEntities } from '../../texts/entities.js';
import { plain, type Span, styled, withStyle } from './styled-text.js';

/** Deepest nesting that is followed; what is deeper is shown as it was written. */
export const MAX_DEPTH = 40;

/** Spans of the text in a block. HTML is shown as text, and a link is followed by its address. */
export function inlineSpans(tokens: readonly Token[], depth: number): Span[] {
  return tokens.flatMap((token) => spansOf(token as MarkedToken, depth));
}

function spansOf(token: MarkedToken, depth: number): Span[] {
  if (depth > MAX_DEPTH) return [plain(token.raw)];
  switch (token.type) {
    case 'strong':
      return withStyle(inlineSpans(token.tokens, depth + 1), 'bold');
    case 'em':
      return withStyle(inlineSpans(token.tokens, depth + 1), 'italic');
    case 'del':
      return withStyle(inlineSpans(token.tokens, depth + 1), 'strike');
    case 'codespan':
      return [styled(token.text, 'code')];
    case 'br':
      return [plain('\n')];
    case 'link':
      return linkSpans(token.href, inlineSpans(token.tokens, depth + 1));
    case 'image':
      return linkSpans(token.href, [plain(token.text)]);
    case 'checkbox':
      return [plain(token.checked ? '\u2611 ' : '\u2610 ')];
    case 'escape':
      return [plain(token.text)];
    case 'text':
      if (token.tokens !== undefined) return inlineSpans(token.tokens, depth + 1);
      return [plain(decodeEntities(token.text))];
    default:
      return [plain(token.raw)];
  }
}

/** The address is always shown: a link that only its text names could lead anywhere. */
function linkSpans(href: string, label: readonly Span[]): Span[] {
  const text = label.map((span) => span.text).join('');
  if (text === '' || text === href || `mailto:${text}` === href) return [styled(href, 'underline')];
  return [...withStyle(label, 'underline'), styled(` (${href})`, 'dim')];
}
