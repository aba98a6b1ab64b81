// C0 but tab and newline, DEL, C1: what a terminal would obey instead of showing it.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/**
 * A text without control characters other than newlines and tabs. A model's text is not to be trusted: an escape
 * sequence in it could move the cursor, set the title or the clipboard, or have the terminal type. Without its ESC it
 * is harmless text. Each character is judged alone, so that pieces of a stream may be passed one by one.
 */
export function plainText(text: string): string {
  return text.replace(CONTROL, '');
}

/** A plain text on one line, shortened to at most `most` characters. */
export function plainLine(text: string, most: number): string {
  const line = plainText(text).replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= most ? line : `${characters.slice(0, Math.max(0, most - 1)).join('')}…`;
}
