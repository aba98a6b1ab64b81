import { SPACES } from './character-classes.js';
import { endBeforeSpace, leadingSpace } from './strip.js';

/** str.split(separator, most); most below 0: no limit. */
export function splitFromLeft(text: string, separator: string, most: number): string[] {
  const parts = text.split(separator);
  if (most < 0 || parts.length <= most + 1) return parts;
  return [...parts.slice(0, most), parts.slice(most).join(separator)];
}

/** str.rsplit(separator, most): separators are found from the end. */
export function splitFromRight(text: string, separator: string, most: number): string[] {
  const parts: string[] = [];
  let end = text.length;
  while (most < 0 || parts.length < most) {
    const at = end < separator.length ? -1 : text.lastIndexOf(separator, end - separator.length);
    if (at < 0) break;
    parts.push(text.slice(at + separator.length, end));
    end = at;
  }
  parts.push(text.slice(0, end));
  return parts.reverse();
}

const SPACE_RUN = new RegExp(`[${SPACES}]+`);

/** str.split() and str.rsplit() at runs of white space. */
export function splitSpace(text: string, most: number, fromRight: boolean): string[] {
  const body = text.slice(leadingSpace(text), Math.max(leadingSpace(text), endBeforeSpace(text)));
  if (body === '') return [];
  const parts = body.split(SPACE_RUN);
  if (most < 0 || parts.length <= most + 1) return parts;
  return fromRight ? limitedFromRight(text, parts, most) : limitedFromLeft(text, parts, most);
}

/** The last part goes on to the end of the text, with the white space there. */
function limitedFromLeft(text: string, parts: readonly string[], most: number): string[] {
  let start = leadingSpace(text);
  for (const part of parts.slice(0, most)) {
    start += part.length;
    start += leadingSpace(text.slice(start));
  }
  return [...parts.slice(0, most), text.slice(start)];
}

function limitedFromRight(text: string, parts: readonly string[], most: number): string[] {
  let rest = text.slice(0, endBeforeSpace(text));
  const last = most === 0 ? [] : parts.slice(-most);
  for (const part of [...last].reverse()) {
    rest = rest.slice(0, rest.length - part.length);
    rest = rest.slice(0, endBeforeSpace(rest));
  }
  return [rest, ...last];
}

/** Characters that end a line, as the inside of a class of a regular expression. */
const LINE_END = '\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029';
const LINE_ENDS = new RegExp(`\\r\\n|[${LINE_END}]`, 'g');

/** str.splitlines. */
export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: end, index } of text.matchAll(LINE_ENDS)) {
    lines.push(text.slice(start, keepEnds ? index + end.length : index));
    start = index + end.length;
  }
  if (start < text.length) lines.push(text.slice(start));
  return lines;
}
