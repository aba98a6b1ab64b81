import { type Merges, symbolsOf } from './long-words.js';
import { PatternBorders } from './pattern-borders.js';
import { type WordIds, WordMemory } from './word-memory.js';
import { type LibraryPreTokenizer, type PreTokenizeOptions, WordCutter } from './word-stream.js';

/** A BPE model of @huggingface/tokenizers. */
export interface LibraryBpe extends Merges {
  /** Entries of the vocabulary for words; one that it lacks is `unk_token`. */
  encode(words: string[]): string[];
  tokens_to_ids: ReadonlyMap<string, number>;
  unk_token?: string | null | undefined;
  unk_token_id?: number | undefined;
  fuse_unk: boolean;
  byte_fallback: boolean;
  ignore_merges: boolean;
  continuing_subword_suffix: string | null;
}

/** Longest word, in UTF-16 units, that is left to the library. */
const MAX_WORD_UNITS = 1024;
/** In a list of ids: an entry that the vocabulary lacks. */
const NO_ID = -1;

const encoder = new TextEncoder();

/**
 * Encodes a text's words as the library does, one by one, and remembers what became of short ones: a text of many thousands of words has
 * few that were not there before. Holds little more than the present word, however long the text is.
 */
export class BpeEncoding {
  readonly #model: LibraryBpe;
  readonly #words: WordCutter;
  readonly #memory = new WordMemory();

  constructor(model: LibraryBpe, preTokenizer: LibraryPreTokenizer | null) {
    this.#model = model;
    this.#words = new WordCutter(preTokenizer);
  }

  /** Places at which a text may be cut before it is encoded; null: there are none. */
  get borders(): PatternBorders | null {
    const { patterns } = this.#words;
    // Where unknown entries are fused, one may be joined with the last of the word before.
    if (patterns === null || this.#model.fuse_unk) return null;
    const borders = new PatternBorders(patterns);
    return borders.exist ? borders : null;
  }

  /** Calls `push` with each id of a text; undefined for an entry that the vocabulary lacks. */
  encode(text: string, options: PreTokenizeOptions, push: (id: number | undefined) => void): void {
    const { unk_token_id: unknown, fuse_unk: isFused } = this.#model;
    let afterUnknown = false;
    const take = (known: number) => {
      const id = known === NO_ID ? undefined : known;
      const isUnknown = (id ?? unknown) === unknown;
      if (!(isFused && isUnknown && afterUnknown)) push(id);
      afterUnknown = isUnknown;
    };
    this.#words.each(text, options, (word) => {
      if (word.length > MAX_WORD_UNITS) {
        for (const entry of this.#entriesOf(this.#words.spelled(word))) take(this.#idOf(entry));
        return;
      }
      const ids = this.#memory.get(word) ?? this.#encodeWord(word);
      if (typeof ids === 'number') take(ids);
      else for (const id of ids) take(id);
    });
  }

  #encodeWord(word: string): WordIds {
    const all = Array.from(this.#entriesOf(this.#words.spelled(word)), (entry) => this.#idOf(entry));
    const ids = all.length === 1 ? all[0]! : all;
    this.#memory.set(word, ids);
    return ids;
  }

  #idOf(entry: string): number {
    return this.#model.tokens_to_ids.get(entry) ?? NO_ID;
  }

  #entriesOf(word: string): Iterable<string> {
    return word.length > MAX_WORD_UNITS ? entriesOfLong(this.#model, word) : this.#model.encode([word]);
  }
}

/** Entries for one long word, as the library's `encode` makes them. */
function* entriesOfLong(model: LibraryBpe, word: string): Generator<string> {
  if (model.ignore_merges && model.tokens_to_ids.has(word)) {
    yield word;
    return;
  }
  const suffix = model.continuing_subword_suffix || '';
  let previous: string | null = null;
  for (const symbol of symbolsOf(word, model)) {
    if (previous !== null) yield* entriesOfSymbol(model, previous + suffix);
    previous = symbol;
  }
  if (previous !== null) yield* entriesOfSymbol(model, previous);
}

function* entriesOfSymbol(model: LibraryBpe, symbol: string): Generator<string> {
  if (model.tokens_to_ids.has(symbol)) {
    yield symbol;
    return;
  }
  if (model.byte_fallback) {
    const bytes = Array.from(encoder.encode(symbol), byteEntry);
    if (bytes.every((entry) => model.tokens_to_ids.has(entry))) {
      yield* bytes;
      return;
    }
  }
  if (model.unk_token !== undefined && model.unk_token !== null) yield model.unk_token;
}

function byteEntry(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}
