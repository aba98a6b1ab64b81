import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tokenizer as LibraryTokenizer } from '@huggingface/tokenizers';
import { BpeTables } from '../../../models/tokenizer/bpe-tables.js';
import { adjustForLibrary } from '../../../models/tokenizer/library-adjustments.js';
import { type ModelJson, parseTokenizerJson } from '../../../models/tokenizer/tokenizer-json.js';
import type { LibraryPreTokenizer } from '../../../models/tokenizer/word-stream.js';
import type { Random } from '../../../tools/soak/random.js';
import { testModelPath } from '../../support/test-model.js';
import { byteLevelFiles, sentencePieceFiles } from './tiny-tokenizers.js';

/** The library's parts, which judge what is done in their place. */
export interface Library {
  pre_tokenizer: LibraryPreTokenizer | null;
  model: {
    tokens_to_ids: ReadonlyMap<string, number>;
    bpe_ranks: ReadonlyMap<string, number>;
    bpe(word: string): string[];
    _call(words: string[]): string[];
  };
}

export function libraryOf(tokenizerJson: unknown): Library {
  const library: unknown = new LibraryTokenizer(
    adjustForLibrary(parseTokenizerJson(tokenizerJson), new Set()),
    {},
  );
  return library as Library;
}

/** The model of a tokenizer.json, and its tables. */
export function modelOf(tokenizerJson: unknown): { model: ModelJson; tables: BpeTables } {
  const { model } = parseTokenizerJson(tokenizerJson);
  return { model, tables: new BpeTables(BpeTables.make(model)) };
}

/** A tokenizer.json with this model alone. */
export const withModel = (model: object) => ({ added_tokens: [], model: { type: 'BPE', ...model } });

const fileOf = (folder: string): unknown => JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8'));
const demo = fileURLToPath(new URL('../../../models/demo/gosling', import.meta.url));

/** Tokenizers of models, the real one where it is there. */
export const MODEL_TOKENIZERS: readonly [string, () => unknown][] = [
  ['the demo model', () => fileOf(demo)],
  ['a byte-level BPE', () => byteLevelFiles().tokenizerJson],
  ['a SentencePiece BPE', () => sentencePieceFiles().tokenizerJson],
  ...(testModelPath === null ? [] : [['SmolLM2', () => fileOf(testModelPath!)] as [string, () => unknown]]),
];

export const ALPHABETS: readonly (readonly string[])[] = [
  ['a'],
  ['a', 'b'],
  ['Ġ', 'a', 'h', 'e', 'l', 'o'],
  ['▁', 't', 'h', 'i', 'e', 'r'],
  ['你', '好', '世', '界'],
  ['\u{1f600}', '\u{1f601}', '\u{20000}'],
  // Halves of characters, alone and next to each other.
  ['\ud83d', '\ude00', 'a', '\u{1f600}', '"', '\\', '\u0000'],
  [...'abcdefghijklmnopqrstuvwxyz'],
  ['ä', '½', 'ï', '¼', 'Į', 'a', ' ', '你', '\u{1f600}', '\n'],
];

/** Mostly short, and some of thousands of characters. */
export function randomWord(random: Random, alphabet: readonly string[], min = 2, max = 5000): string {
  const length = random.chance(0.8) ? random.integer(min, min + 60) : random.integer(min, max);
  return Array.from({ length }, () => random.pick(alphabet)).join('');
}

/**
 * Merges and vocabulary of no sense: the parts of a merge are symbols that there are, in any order of ranks, some merges twice, some
 * of their texts not in the vocabulary.
 */
export function randomModel(random: Random, alphabet: readonly string[], suffix = ''): object {
  const symbols = [...alphabet, ...(suffix === '' ? [] : alphabet.map((letter) => letter + suffix))];
  const merges: [string, string][] = [];
  for (let i = 0; i < 60; i++) {
    const [left, right] = [random.pick(symbols), random.pick(symbols)];
    if (left.length + right.length > 40) continue;
    merges.push([left, right]);
    symbols.push(left + right);
  }
  for (let i = merges.length - 1; i > 0; i--) {
    const j = random.integer(0, i);
    [merges[i], merges[j]] = [merges[j]!, merges[i]!];
  }
  const known = [...new Set(symbols)].filter(() => random.chance(0.9));
  return { vocab: Object.fromEntries(known.map((symbol, id) => [symbol, id])), merges };
}
