import type { BpeTables } from './bpe-tables.js';
import { PatternBorders } from './pattern-borders.js';
import { NONE } from './slot-table.js';
import type { ModelJson } from './tokenizer-json.js';
import { type WordIds, WordMemory } from './word-memory.js';
import { type LibraryPreTokenizer, type PreTokenizeOptions, WordCutter } from './word-stream.js';
import { eachSymbol } from './word-symbols.js';

/** Longest word, in UTF-16 units, whose ids are collected in a list: a longer one is not remembered. */
const MAX_WORD_UNITS = 1024;

/** Takes an id, or NONE for an entry that the vocabulary lacks. */
type TakeId = (id: number) => void;

const encoder = new TextEncoder();

/**
 * Encodes a text's words one by one, as @huggingface/tokenizers does, and remembers what became of short ones: a text of many thousands
 * of words has few that were not there before. Holds little more than the present word, however long the text is.
 */
export class BpeEncoding {
  /** The id of the unknown token; undefined where the model has none. */
  readonly unknownId: number | undefined;
  readonly #tables: BpeTables;
  readonly #model: ModelJson;
  /** Symbols that a text never becomes. */
  readonly #unreachable: ReadonlySet<number>;
  /** Added to the last symbol of a word before merging. */
  readonly #endSuffix: string;
  /** Added to all symbols of a word but the last after merging. */
  readonly #innerSuffix: string;
  readonly #words: WordCutter;
  readonly #memory = new WordMemory();
  #bytes: Int32Array | null = null;

  /**
   * @param model the model's entry in tokenizer.json; its vocabulary and merges are not read
   * @param controls entries that texts must not become
   */
  constructor(
    tables: BpeTables,
    model: ModelJson,
    controls: Iterable<string>,
    preTokenizer: LibraryPreTokenizer | null,
  ) {
    this.#tables = tables;
    this.#model = model;
    this.#unreachable = new Set(Array.from(controls, (text) => tables.symbolAt(text, 0, text.length)));
    this.#endSuffix = textOr(model.end_of_word_suffix, '');
    this.#innerSuffix = textOr(model.continuing_subword_suffix, '');
    this.unknownId = tables.idOf(textOr(model.unk_token, ''));
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
    const { unknownId: unknown } = this;
    const isFused = this.#model.fuse_unk === true;
    let afterUnknown = false;
    const take = (known: number) => {
      const id = known === NONE ? undefined : known;
      const isUnknown = (id ?? unknown) === unknown;
      if (!(isFused && isUnknown && afterUnknown)) push(id);
      afterUnknown = isUnknown;
    };
    this.#words.each(text, options, (word) => {
      if (word.length > MAX_WORD_UNITS) {
        this.#eachId(this.#words.spelled(word), take);
        return;
      }
      const ids = this.#memory.get(word) ?? this.#encodeWord(word);
      if (typeof ids === 'number') take(ids);
      else for (const id of ids) take(id);
    });
  }

  #encodeWord(word: string): WordIds {
    const all: number[] = [];
    this.#eachId(this.#words.spelled(word), (id) => all.push(id));
    const ids = all.length === 1 ? all[0]! : all;
    this.#memory.set(word, ids);
    return ids;
  }

  #eachId(word: string, take: TakeId): void {
    if (word === '') return;
    if (this.#model.ignore_merges) {
      const id = this.#idOf(this.#tables.symbolAt(word, 0, word.length));
      if (id !== NONE) {
        take(id);
        return;
      }
    }
    const spelled = word + this.#endSuffix;
    eachSymbol(word, this.#endSuffix, this.#tables, (symbol, start, end) => {
      const suffix = end < spelled.length ? this.#innerSuffix : '';
      const id = suffix === '' ? this.#idOf(symbol) : NONE;
      if (id !== NONE) take(id);
      else this.#takeText(spelled.slice(start, end) + suffix, take);
    });
  }

  /** The id of a text that merges have made, or what stands for it. */
  #takeText(text: string, take: TakeId): void {
    const id = this.#idOf(this.#tables.symbolAt(text, 0, text.length));
    const { byte_fallback: hasBytes, unk_token: unknown } = this.#model;
    const bytes =
      id === NONE && hasBytes ? Array.from(encoder.encode(text), (byte) => this.#byteIds[byte]!) : [NONE];
    if (id !== NONE) take(id);
    else if (!bytes.includes(NONE)) bytes.forEach(take);
    else if (typeof unknown === 'string') take(this.#idOf(this.#tables.symbolAt(unknown, 0, unknown.length)));
  }

  /** Ids of the entries for single bytes, or NONE. */
  get #byteIds(): Int32Array {
    this.#bytes ??= Int32Array.from({ length: 256 }, (_, byte) => {
      const entry = byteEntry(byte);
      return this.#idOf(this.#tables.symbolAt(entry, 0, entry.length));
    });
    return this.#bytes;
  }

  #idOf(symbol: number): number {
    return this.#unreachable.has(symbol) ? NONE : this.#tables.idOfSymbol(symbol);
  }
}

function textOr(value: unknown, other: string): string {
  return typeof value === 'string' ? value : other;
}

function byteEntry(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}
