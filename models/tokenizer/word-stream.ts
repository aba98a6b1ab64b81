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
 * for a Sequence, one for each of its parts with a list for each word in it. Where the last part only writes letters for the bytes
 * of a word, that step is apart, since it takes longer than all others and a known word does not need it.
 */
export class WordCutter {
  readonly #parts: readonly LibraryPreTokenizer[];
  readonly #letters: Letters | null;

  constructor(part: LibraryPreTokenizer | null) {
    const parts = flattened(part);
    const last = parts.at(-1);
    const isApart = last !== undefined && isByteLevel(last) && !last.use_regex && !last.add_prefix_space;
    this.#letters = isApart ? new Letters(last.byte_encoder) : null;
    this.#parts = isApart ? parts.slice(0, -1) : parts;
  }

  /** The patterns that cut words, in their order; null where something else does, or changes the text. */
  get patterns(): readonly RegExp[] | null {
    return this.#parts.every(isPlainSplit) ? this.#parts.map(({ pattern }) => pattern!) : null;
  }

  /** Calls `take` with each word, before it is spelled. */
  each(text: string, options: PreTokenizeOptions, take: (word: string) => void): void {
    this.#cut(0, text, options, take);
  }

  /** A word as the model knows it. */
  spelled(word: string): string {
    return this.#letters === null ? word : this.#letters.of(word);
  }

  /** Each part cuts the words of the part before. */
  #cut(index: number, text: string, options: PreTokenizeOptions, take: (word: string) => void): void {
    const part = this.#parts[index];
    if (part === undefined) {
      take(text);
      return;
    }
    const next = (word: string) => this.#cut(index + 1, word, options, take);
    if (isPlainSplit(part)) splitAt(part.pattern, text, next);
    else if (isByteLevel(part)) inLetters(part, text, next);
    else for (const word of part.pre_tokenize(text, options)) next(word);
  }
}

/** Parts of a pre-tokenizer in the order in which they cut. */
function flattened(part: LibraryPreTokenizer | null): LibraryPreTokenizer[] {
  if (part === null) return [];
  return part.tokenizers === undefined ? [part] : part.tokenizers.flatMap(flattened);
}

function isPlainSplit(part: LibraryPreTokenizer): part is LibraryPreTokenizer & { pattern: RegExp } {
  const { type, invert, behavior } = part.config ?? {};
  if (type !== 'Split' || invert || !(part.pattern instanceof RegExp)) return false;
  if (!part.pattern.global || !part.pattern.unicode) return false;
  return String(behavior).toLowerCase() !== 'removed';
}

/**
 * Matches and the texts between them, as the library's `regex_split` gives them. Matches are looked for by the pattern itself, from the
 * first unit on: a copy for each text, as matchAll makes it, would take longer than cutting short texts.
 */
function splitAt(pattern: RegExp, text: string, take: (word: string) => void): void {
  let end = 0;
  let from = 0;
  for (;;) {
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    if (match === null) break;
    const [word] = match;
    if (end < match.index) take(text.slice(end, match.index));
    end = match.index + word.length;
    from = word.length > 0 ? end : end + (text.codePointAt(end)! > 0xffff ? 2 : 1);
    if (word.length > 0) take(word);
  }
  if (end < text.length) take(end === 0 ? text : text.slice(end));
}

type ByteLevel = LibraryPreTokenizer & { byte_encoder: Readonly<Record<number, string>> };

function isByteLevel(part: LibraryPreTokenizer): part is ByteLevel {
  return part.config?.type === 'ByteLevel' && part.byte_encoder !== undefined;
}

function inLetters(part: ByteLevel, text: string, take: (word: string) => void): void {
  const letters = new Letters(part.byte_encoder);
  const prefixed = part.add_prefix_space && !text.startsWith(' ') ? ` ${text}` : text;
  if (!part.use_regex) take(letters.of(prefixed));
  else for (const [word] of prefixed.matchAll(part.pattern!)) take(letters.of(word));
}

/** Letters for bytes, each of one UTF-16 unit. */
class Letters {
  readonly #units: Uint16Array;

  constructor(letters: Readonly<Record<number, string>>) {
    this.#units = Uint16Array.from({ length: 256 }, (_, byte) => letters[byte]!.charCodeAt(0));
  }

  /** Letters for the bytes of a text's UTF-8. */
  of(text: string): string {
    if (text.length <= UNITS_AT_A_TIME) return this.#ofPiece(text);
    const pieces: string[] = [];
    for (let start = 0; start < text.length; ) {
      let end = Math.min(start + UNITS_AT_A_TIME, text.length);
      // Halves of one character stay together.
      if (end < text.length && text.codePointAt(end - 1)! > 0xffff) end--;
      pieces.push(this.#ofPiece(text.slice(start, end)));
      start = end;
    }
    return pieces.join('');
  }

  /**
   * Letters of a short text. They are joined at once: a text built letter by letter would be an object of 32 bytes for
   * each, all kept until it is read.
   */
  #ofPiece(text: string): string {
    const units: number[] = [];
    for (const byte of encoder.encode(text)) units.push(this.#units[byte]!);
    return String.fromCharCode(...units);
  }
}
