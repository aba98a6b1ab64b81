import { type Merges, symbolsOf } from './long-words.js';

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
/** Units of words that the library gets at a time, since it makes a list of all their tokens. */
const UNITS_AT_A_TIME = 16_384;

const encoder = new TextEncoder();

/**
 * Ids for the words of a text, as the library gives them; undefined for an entry that the vocabulary lacks. Holds
 * little more than the present word, however long the text is.
 */
export function* bpeIds(model: LibraryBpe, words: Iterable<string>): Generator<number | undefined> {
  let afterUnknown = false;
  for (const entry of entriesOf(model, words)) {
    const id = model.tokens_to_ids.get(entry);
    const isUnknown = (id ?? model.unk_token_id) === model.unk_token_id;
    if (!(model.fuse_unk && isUnknown && afterUnknown)) yield id;
    afterUnknown = isUnknown;
  }
}

/** Entries of the vocabulary for words. */
function* entriesOf(model: LibraryBpe, words: Iterable<string>): Generator<string> {
  let short: string[] = [];
  let units = 0;
  for (const word of words) {
    const isLong = word.length > MAX_WORD_UNITS;
    if (!isLong) {
      short.push(word);
      units += word.length;
    }
    if (isLong || units >= UNITS_AT_A_TIME) {
      yield* model.encode(short);
      short = [];
      units = 0;
    }
    if (isLong) yield* entriesOfLong(model, word);
  }
  yield* model.encode(short);
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
