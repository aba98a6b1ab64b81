/**
 * Characters that no text has, which distinguish other files from texts: controls but for the tab, line and
 * page breaks and escape.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const BINARY = /[\0-\x08\x0e-\x1a\x1c-\x1f]/;

/** Text of a file in UTF-8, or in UTF-16 with its mark, with line breaks of one character; null: it is no text. */
export function decodedText(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder(encodingOf(bytes), { fatal: true }).decode(bytes);
    return BINARY.test(text) ? null : text.replace(/\r\n?/g, '\n');
  } catch {
    return null;
  }
}

function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
}

/** The beginning of a text, of at most `most` characters; none is cut into halves. */
export function beginningOf(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

/** A file's text as a message has it. */
export interface NamedFileText {
  name: string;
  /** The part of the file that this is, as in "pages 1 to 500 of 612"; '': all of it. */
  part: string;
  /** null: it is not kept any more. */
  content: string | null;
}

/** The text of a file between fences that do not occur in it, under the file's name. */
export function markedText({ name, part, content }: NamedFileText): string {
  const text = content ?? '';
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), ([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const line = name.replace(/\s+/g, ' ');
  return `File: ${line}${part === '' ? '' : ` (${part})`}\n${fence}\n${text}\n${fence}`;
}
