/** A foreign message as one sentence: on one line, and with one full stop whether it had one or not. */
export function asSentence(text: string): string {
  const line = text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\s:;,]+$/, '');
  return /[.?!]$/.test(line) ? line : `${line}.`;
}

/** "1 request", "2 requests". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
