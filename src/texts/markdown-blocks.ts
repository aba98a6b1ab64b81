import { Lexer, type MarkedOptions, type Token } from 'marked';

/**
 * Top-level blocks of a text, whose `raw` add up to it. A paragraph nested too deeply for the parser becomes
 * one plain text; the text before and after it is still parsed.
 * @param syntax what is read in addition to Markdown
 */
export function blocksOf(text: string, syntax: MarkedOptions = {}): Token[] {
  const blocks: Token[] = [];
  let rest = text;
  for (;;) {
    const read = lexed(rest, syntax);
    if (read !== null) return [...blocks, ...read];
    const through = throughFirstDeep(rest, syntax);
    blocks.push(...through.read);
    rest = rest.slice(through.length);
  }
}

/** Parses as many paragraphs as possible of a text that cannot be parsed whole, and the next one as plain text. */
function throughFirstDeep(text: string, syntax: MarkedOptions): { read: Token[]; length: number } {
  const paragraphs = text.split(/(?<=\n\n)/);
  const upTo = (count: number) => paragraphs.slice(0, count).join('');
  let [readable, unreadable] = [0, paragraphs.length];
  let read: Token[] = [];
  while (unreadable - readable > 1) {
    const middle = (readable + unreadable) >> 1;
    const tokens = lexed(upTo(middle), syntax);
    if (tokens === null) unreadable = middle;
    else [readable, read] = [middle, tokens];
  }
  return { read: [...read, plain(paragraphs[readable]!)], length: upTo(unreadable).length };
}

/** Parses a text; null where the stack is not deep enough. */
function lexed(text: string, syntax: MarkedOptions): Token[] | null {
  try {
    // `breaks` keeps line feeds, as in a chat.
    return new Lexer({ ...syntax, gfm: true, breaks: true }).lex(text);
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
