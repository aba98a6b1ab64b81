/** Turns a foreign message into one sentence: on one line, ending in one full stop. */
export function asSentence(text: string): string {
  const line = text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\s:;,]+$/, '');
  return /[.?!]$/.test(line) ? line : `${line}.`;
}

/** A sentence as a part of another one: without its full stop. */
export function asClause(sentence: string): string {
  return sentence.replace(/\.$/, '');
}

/** A count with its noun: "1 request", "2 requests". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
