import { describe, expect, it } from 'vitest';
import type { BpeTables } from '../../../models/tokenizer/bpe-tables.js';
import { eachSymbol } from '../../../models/tokenizer/word-symbols.js';
import { Random } from '../../../tools/soak/random.js';
import { draws } from '../../support/scale.js';
import {
  ALPHABETS,
  libraryOf,
  MODEL_TOKENIZERS,
  modelOf,
  randomModel,
  randomWord,
  withModel,
} from './library-tokenizer.js';

/** Texts of a word's symbols. */
function symbolsOf(word: string, tables: BpeTables, suffix = ''): string[] {
  const spelled = word + suffix;
  const texts: string[] = [];
  eachSymbol(word, suffix, tables, (symbol, start, end) => {
    const text = spelled.slice(start, end);
    // An expectation for each of a word's thousands of symbols would take most of the time.
    if (symbol !== tables.symbolAt(text, 0, text.length)) expect.fail(`${text} is not the symbol ${symbol}`);
    texts.push(text);
  });
  return texts;
}

describe.each(MODEL_TOKENIZERS)('the symbols of a word, with the tokenizer of %s', (_, file) => {
  const { model } = libraryOf(file());
  const { tables } = modelOf(file());

  it.each(ALPHABETS.map((alphabet) => [alphabet]))('are those of the library, of %j', (alphabet) => {
    const random = new Random(alphabet.length);
    for (let i = 0; i < 12; i++) {
      const word = randomWord(random, alphabet);
      expect(symbolsOf(word, tables)).toEqual(model.bpe(word));
    }
  });

  it('are those of the library where one letter is repeated', () => {
    for (const letter of ['a', 'Ġ', '▁', '=', '你', '\u{1f600}']) {
      for (const length of [1, 2, 3, 31, 32, 33, 64, 1025, 3000]) {
        const word = letter.repeat(length);
        expect(symbolsOf(word, tables)).toEqual(model.bpe(word));
      }
    }
  });
});

describe('merges of no sense', () => {
  const WORDS = draws(50);
  it.each([
    ['', 1],
    ['</w>', 2],
    // After half a character it would make a whole one.
    ['\ude00', 3],
  ])('give the symbols of the library, with %j at the end of a word', (suffix, seed) => {
    const random = new Random(seed);
    let merged = 0;
    for (let i = 0; i < WORDS; i++) {
      const alphabet = random.pick(ALPHABETS);
      const json = withModel({ ...randomModel(random, alphabet, suffix), end_of_word_suffix: suffix });
      const { model } = libraryOf(json);
      const word = randomWord(random, alphabet, 1, 1500);
      const symbols = symbolsOf(word, modelOf(json).tables, suffix);
      expect(symbols).toEqual(model.bpe(word));
      expect(symbols.join('')).toBe(word + suffix);
      if (symbols.length < [...word].length) merged++;
    }
    expect(merged).toBeGreaterThan(0.6 * WORDS);
  });
});
