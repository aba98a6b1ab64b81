import { mixed, NONE, numSlots, slotTable } from './slot-table.js';
import type { ModelJson } from './tokenizer-json.js';

/** Numbers that say where each array of the tables begins and ends. */
export interface TableSizes {
  /** Texts of the vocabulary, and those that only merges have. */
  numSymbols: number;
  /** The largest id plus 1, or the number of entries where that is more. */
  numIds: number;
  numMerges: number;
  /** UTF-16 units of all texts together. */
  numUnits: number;
  /** UTF-16 units of the longest entry of the vocabulary. */
  longest: number;
  textSeed: number;
  mergeSeed: number;
}

/** The tables of a BPE model: plain numbers and bytes, which go to other threads and into files as they are. */
export interface BpeTablesData {
  sizes: TableSizes;
  /** Length bytesOf(sizes), at a multiple of four of its buffer. */
  bytes: Uint8Array;
}

/** Bytes of tables with these sizes. */
export function bytesOf({ numSymbols, numIds, numMerges, numUnits }: TableSizes): number {
  const numbers = 2 * numSymbols + 1 + numIds + numSlots(numSymbols) + 3 * numMerges + numSlots(numMerges);
  return 4 * numbers + 2 * numUnits;
}

/**
 * Vocabulary and merges of a BPE model, which are looked up where they lie: a start neither makes maps of a hundred thousand texts nor
 * reads the texts at all.
 *
 * Each text is a symbol, by its number: the entries of the vocabulary, and texts that only merges have. The rank of a merge is found by the
 * symbols of both sides, and has the symbol that they become. Both look-ups go through a hash table of numbers.
 */
export class BpeTables {
  readonly #sizes: TableSizes;
  /** Where each symbol's text begins in the units, and where the last one ends. */
  readonly #starts: Int32Array;
  /** The id of each symbol, or NONE. */
  readonly #ids: Int32Array;
  /** The symbol of each id, or NONE. */
  readonly #symbols: Int32Array;
  readonly #textSlots: Int32Array;
  /** Symbols of each merge, by rank. */
  readonly #lefts: Int32Array;
  readonly #rights: Int32Array;
  readonly #results: Int32Array;
  readonly #mergeSlots: Int32Array;
  readonly #units: Uint16Array;

  constructor({ sizes, bytes }: BpeTablesData) {
    const { numSymbols, numIds, numMerges, numUnits } = sizes;
    let offset = bytes.byteOffset;
    const next = (length: number) => {
      const part = new Int32Array(bytes.buffer, offset, length);
      offset += part.byteLength;
      return part;
    };
    this.#sizes = sizes;
    this.#starts = next(numSymbols + 1);
    this.#ids = next(numSymbols);
    this.#symbols = next(numIds);
    this.#textSlots = next(numSlots(numSymbols));
    this.#lefts = next(numMerges);
    this.#rights = next(numMerges);
    this.#results = next(numMerges);
    this.#mergeSlots = next(numSlots(numMerges));
    this.#units = new Uint16Array(bytes.buffer, offset, numUnits);
  }

  /** Makes the tables of a model. @throws TokenizerError where they cannot be made of it */
  static make(model: ModelJson): BpeTablesData {
    const texts = Object.keys(model.vocab);
    const ids = Object.values(model.vocab as Record<string, number>);
    const numEntries = texts.length;
    const known = new Map(texts.map((text, symbol) => [text, symbol]));
    const symbolOf = (text: string): number => {
      const symbol = known.get(text) ?? texts.push(text) - 1;
      known.set(text, symbol);
      return symbol;
    };
    const merges = (model.merges ?? []).map((merge) => {
      const [left, right] = typeof merge === 'string' ? merge.split(' ', 2) : merge;
      return [symbolOf(left!), symbolOf(right!), symbolOf(left! + right!)] as const;
    });
    const sizes: TableSizes = {
      numSymbols: texts.length,
      numIds: ids.reduce((most, id) => Math.max(most, id + 1), numEntries),
      numMerges: merges.length,
      numUnits: texts.reduce((sum, text) => sum + text.length, 0),
      longest: texts.slice(0, numEntries).reduce((most, text) => Math.max(most, text.length), 0),
      textSeed: 0,
      mergeSeed: 0,
    };
    const bytes = new Uint8Array(bytesOf(sizes));
    new BpeTables({ sizes, bytes }).#fill(texts, ids, merges);
    return { sizes, bytes };
  }

  #fill(
    texts: readonly string[],
    ids: readonly number[],
    merges: readonly (readonly [number, number, number])[],
  ) {
    this.#ids.fill(NONE).set(ids);
    this.#symbols.fill(NONE);
    for (const [symbol, id] of ids.entries()) this.#symbols[id] = symbol;
    for (const [symbol, text] of texts.entries()) {
      const start = this.#starts[symbol]!;
      for (let i = 0; i < text.length; i++) this.#units[start + i] = text.charCodeAt(i);
      this.#starts[symbol + 1] = start + text.length;
    }
    for (const [rank, [left, right, result]] of merges.entries()) {
      this.#lefts[rank] = left;
      this.#rights[rank] = right;
      this.#results[rank] = result;
    }
    const hashOfText = (symbol: number, seed: number) =>
      hashOf(texts[symbol]!, 0, texts[symbol]!.length, seed);
    const ofTexts = slotTable(texts.length, hashOfText, () => false);
    const hashOfMerge = (rank: number, seed: number) =>
      hashOfPair(this.#lefts[rank]!, this.#rights[rank]!, seed);
    const isSame = (one: number, other: number) =>
      this.#lefts[one] === this.#lefts[other] && this.#rights[one] === this.#rights[other];
    const ofMerges = slotTable(merges.length, hashOfMerge, isSame);
    this.#textSlots.set(ofTexts.slots);
    this.#mergeSlots.set(ofMerges.slots);
    this.#sizes.textSeed = ofTexts.seed;
    this.#sizes.mergeSeed = ofMerges.seed;
  }

  /** The largest id plus 1. */
  get size(): number {
    return this.#sizes.numIds;
  }

  /** UTF-16 units of the longest entry. */
  get longest(): number {
    return this.#sizes.longest;
  }

  /** The entry with an id; undefined where there is none. */
  textOf(id: number): string | undefined {
    const symbol = this.#symbols[id] ?? NONE;
    if (symbol === NONE) return undefined;
    const { buffer, byteOffset, byteLength } = this.#units.subarray(
      this.#starts[symbol],
      this.#starts[symbol + 1],
    );
    return Buffer.from(buffer, byteOffset, byteLength).toString('utf16le');
  }

  /** The id of an entry; undefined where there is none. */
  idOf(text: string): number | undefined {
    const id = this.idOfSymbol(this.symbolAt(text, 0, text.length));
    return id === NONE ? undefined : id;
  }

  /** The id of a symbol, or NONE. */
  idOfSymbol(symbol: number): number {
    return symbol === NONE ? NONE : this.#ids[symbol]!;
  }

  /** The symbol that the units from start to end of a text are, or NONE. */
  symbolAt(text: string, start: number, end: number): number {
    const mask = this.#textSlots.length - 1;
    let at = hashOf(text, start, end, this.#sizes.textSeed) & mask;
    for (;;) {
      const symbol = this.#textSlots[at]!;
      if (symbol === NONE || this.#isAt(symbol, text, start, end)) return symbol;
      at = (at + 1) & mask;
    }
  }

  /** Rank of the merge of two symbols, or NONE. */
  rankOf(left: number, right: number): number {
    const mask = this.#mergeSlots.length - 1;
    let at = hashOfPair(left, right, this.#sizes.mergeSeed) & mask;
    for (;;) {
      const rank = this.#mergeSlots[at]!;
      if (rank === NONE || (this.#lefts[rank] === left && this.#rights[rank] === right)) return rank;
      at = (at + 1) & mask;
    }
  }

  /** The symbol that a merge makes. */
  resultOf(rank: number): number {
    return this.#results[rank]!;
  }

  #isAt(symbol: number, text: string, start: number, end: number): boolean {
    const first = this.#starts[symbol]!;
    if (this.#starts[symbol + 1]! - first !== end - start) return false;
    for (let i = start; i < end; i++) {
      if (this.#units[first + i - start] !== text.charCodeAt(i)) return false;
    }
    return true;
  }
}

function hashOf(text: string, start: number, end: number, seed: number): number {
  let hash = seed;
  for (let i = start; i < end; i++) hash = mixed(hash, text.charCodeAt(i));
  return hash;
}

function hashOfPair(left: number, right: number, seed: number): number {
  return mixed(mixed(seed, left), right);
}
