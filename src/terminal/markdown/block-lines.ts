import type { MarkedToken, Token, Tokens } from 'marked';
import { decodeEntities } from '../../texts/entities.js';
import { inlineSpans, MAX_DEPTH } from './inline-spans.js';
import { type Line, plain, type Span, styled, withStyle, wrappedSpans } from './styled-text.js';
import { tableLines } from './table-lines.js';

/** Narrowest text within lists and quotes; deeper ones are not narrowed further. */
const MIN_WIDTH = 16;
const MAX_RULE_WIDTH = 40;

/** Blocks of Markdown as lines of a terminal, an empty line between two blocks. Lines of code are not cut. */
export function blockLines(tokens: readonly Token[], width: number, depth = 0): Line[] {
  const lines: Line[] = [];
  for (const token of tokens as readonly MarkedToken[]) {
    const made = linesOf(token, depth === 0 ? width : Math.max(MIN_WIDTH, width), depth);
    // A list stands close to the words that it belongs to, as a part of a list does.
    const isClose = depth > 0 && token.type === 'list';
    if (lines.length > 0 && made.length > 0 && !isClose) lines.push([]);
    lines.push(...made);
  }
  return lines;
}

function linesOf(token: MarkedToken, width: number, depth: number): Line[] {
  if (depth > MAX_DEPTH) return wrappedSpans([plain(token.raw.trimEnd())], width);
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'code':
      return codeLines(token);
    case 'heading': {
      const spans = withStyle(inlineSpans(token.tokens, depth + 1), 'bold');
      return wrappedSpans(token.depth === 1 ? withStyle(spans, 'underline') : spans, width);
    }
    case 'hr':
      return [[styled('─'.repeat(Math.min(width, MAX_RULE_WIDTH)), 'dim')]];
    case 'blockquote':
      return blockLines(token.tokens, width - 2, depth + 1).map((line) => [styled('│ ', 'dim'), ...line]);
    case 'list':
      return listLines(token, width, depth);
    case 'table':
      return tableLines(token, width, depth);
    case 'html':
      return wrappedSpans([plain(token.raw.trimEnd())], width);
    default:
      return wrappedSpans(spansOf(token, depth), width);
  }
}

function spansOf(token: MarkedToken, depth: number): Span[] {
  if (token.type === 'paragraph') return inlineSpans(token.tokens, depth + 1);
  if (token.type !== 'text') return inlineSpans([token], depth);
  return token.tokens === undefined
    ? [plain(decodeEntities(token.text))]
    : inlineSpans(token.tokens, depth + 1);
}

/** Items follow each other closely, whether or not there are empty lines between them: these may come with a later item. */
function listLines({ ordered, start, items }: Tokens.List, width: number, depth: number): Line[] {
  const first = start === '' ? 1 : start;
  return items.flatMap((item, index) => {
    const sign = ordered ? `${first + index}. ` : '• ';
    const [head = [], ...rest] = blockLines(item.tokens, width - sign.length, depth + 1);
    const indent = plain(' '.repeat(sign.length));
    return [[plain(sign), ...head], ...rest.map((line) => (line.length === 0 ? line : [indent, ...line]))];
  });
}

/** Code stands at the margin and is not cut, so that it can be copied; its fences show where it begins and ends. */
function codeLines({ raw, text, lang }: Tokens.Code): Line[] {
  const code = text.split('\n').map((line) => [styled(line, 'code')]);
  const fence = fenceOf(raw);
  if (fence === null) return code;
  const begin = [styled(`${fence}${lang ?? ''}`, 'dim')];
  const isOpen = !raw.trimEnd().split('\n').slice(1).at(-1)?.trim().startsWith(fence);
  return [begin, ...(text === '' ? [] : code), ...(isOpen ? [] : [[styled(fence, 'dim')]])];
}

/** The signs that begin a block of code; null: it is indented. */
function fenceOf(raw: string): string | null {
  return /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1] ?? null;
}

/** The line that begins a block of code which has no end yet; null: the text ends outside of code. */
export function openFence(token: Token): string | null {
  if (token.type !== 'code') return null;
  const fence = fenceOf(token.raw);
  return fence === null ? null : `${fence}${(token as Tokens.Code).lang ?? ''}\n`;
}
