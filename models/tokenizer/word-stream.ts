/** A pre-tokenizer of @huggingface/tokenizers, as far as its properties can be seen from outside. */
export interface LibraryPreTokenizer {
  pre_tokenize(text: string, options: PreTokenizeOptions): string[];
  pre_tokenize_text(text: string, options: PreTokenizeOptions): string[];
  /** Parts of a Sequence. */
  tokenizers?: readonly (LibraryPreTokenizer | null)[];
  /** Its entry in tokenizer.json; a Sequence has none. */
  config?: { type?: unknown; invert?: unknown; behavior?: unknown };
  pattern?: RegExp | null;
  /** Letters of bytes, in a ByteLevel. */
  byte_encoder?: Readonly<Record<number, string>>;
  add_prefix_space?: boolean;
  use_regex?: boolean;
}

export interface PreTokenizeOptions {
  section_index: number;
}

/** Units of a text that are converted to letters for bytes at a time. */
const UNITS_AT_A_TIME = 1024;

const encoder = new TextEncoder();

/**
 * Words of a text as the library's pre-tokenizer makes them, one by one: the library makes a list of all of them and,
 * for a Sequence, one for each of its parts with a list for each word in it.
 */
export function* wordsOf(
  part: LibraryPreTokenizer | null,
  text: string,
  options: PreTokenizeOptions,
): Generator<string> {
  if (part === null) yield text;
  else if (part.tokenizers !== undefined) yield* wordsOfAll(part.tokenizers, 0, text, options);
  else if (isPlainSplit(part)) yield* splitAt(part.pattern, text);
  else if (isByteLevel(part)) yield* inLetters(part, text);
  else yield* part.pre_tokenize(text, options);
}

/** Words of a Sequence: each part cuts the words of the part before. */
function* wordsOfAll(
  parts: readonly (LibraryPreTokenizer | null)[],
  index: number,
  text: string,
  options: PreTokenizeOptions,
): Generator<string> {
  if (index === parts.length) {
    yield text;
    return;
  }
  for (const word of wordsOf(parts[index]!, text, options))
    yield* wordsOfAll(parts, index + 1, word, options);
}

function isPlainSplit(part: LibraryPreTokenizer): part is LibraryPreTokenizer & { pattern: RegExp } {
  const { type, invert, behavior } = part.config ?? {};
  if (type !== 'Split' || invert || !(part.pattern instanceof RegExp)) return false;
  return String(behavior).toLowerCase() !== 'removed';
}

/** Matches and the texts between them, as the library's `regex_split` gives them. */
function* splitAt(pattern: RegExp, text: string): Generator<string> {
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (end < match.index) yield text.slice(end, match.index);
    if (match[0].length > 0) yield match[0];
    end = match.index + match[0].length;
  }
  if (end < text.length) yield text.slice(end);
}

type ByteLevel = LibraryPreTokenizer & { byte_encoder: Readonly<Record<number, string>> };

function isByteLevel(part: LibraryPreTokenizer): part is ByteLevel {
  return part.config?.type === 'ByteLevel' && part.byte_encoder !== undefined;
}

function* inLetters(part: ByteLevel, text: string): Generator<string> {
  const prefixed = part.add_prefix_space && !text.startsWith(' ') ? ` ${text}` : text;
  if (!part.use_regex) yield lettersOf(prefixed, part.byte_encoder);
  else for (const [word] of prefixed.matchAll(part.pattern!)) yield lettersOf(word, part.byte_encoder);
}

/** Letters for the bytes of a text's UTF-8. */
function lettersOf(text: string, letters: Readonly<Record<number, string>>): string {
  if (text.length <= UNITS_AT_A_TIME) return lettersOfPiece(text, letters);
  const pieces: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + UNITS_AT_A_TIME, text.length);
    // Halves of one character stay together.
    if (end < text.length && text.codePointAt(end - 1)! > 0xffff) end--;
    pieces.push(lettersOfPiece(text.slice(start, end), letters));
    start = end;
  }
  return pieces.join('');
}

/**
 * Letters of a short text. They are joined at once: a text built letter by letter would be an object of 32 bytes for
 * each, all kept until it is read.
 */
function lettersOfPiece(text: string, letters: Readonly<Record<number, string>>): string {
  return Array.from(encoder.encode(text), (byte) => letters[byte]!).join('');
}
