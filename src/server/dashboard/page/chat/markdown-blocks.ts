import { Lexer, type Token } from 'marked';

/**
 * Top-level blocks of a text, whose `raw` add up to it. A paragraph that is nested so deeply that the reader gives up is one
 * text; what stands before and behind it is read all the same.
 */
export function blocksOf(text: string): Token[] {
  const blocks: Token[] = [];
  let rest = text;
  for (;;) {
    const read = lexed(rest);
    if (read !== null) return [...blocks, ...read];
    const [before, deep] = firstDeep(rest);
    blocks.push(...(lexed(before) ?? [plain(before)]), plain(deep));
    rest = rest.slice(before.length + deep.length);
  }
}

/** Of a text that cannot be read: as many paragraphs as can, and the next one. */
function firstDeep(text: string): [before: string, deep: string] {
  const paragraphs = text.split(/(?<=\n\n)/);
  const upTo = (count: number) => paragraphs.slice(0, count).join('');
  let [readable, unreadable] = [0, paragraphs.length];
  while (unreadable - readable > 1) {
    const middle = (readable + unreadable) >> 1;
    if (lexed(upTo(middle)) === null) unreadable = middle;
    else readable = middle;
  }
  return [upTo(readable), paragraphs[readable]!];
}

/** null: its stack is not deep enough for it. */
function lexed(text: string): Token[] | null {
  try {
    // Line feeds are kept, as in a chat.
    return new Lexer({ gfm: true, breaks: true }).lex(text);
  } catch {
    return null;
  }
}

const plain = (text: string): Token => ({
  type: 'paragraph',
  raw: text,
  text,
  tokens: [{ type: 'text', raw: text, text }],
});
