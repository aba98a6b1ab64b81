import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  applyTemplate,
  templateLength,
  textTemplate,
  truncateTexts,
} from '../../../models/tokenizer/text-template.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { parseTokenizerJson } from '../../../models/tokenizer/tokenizer-json.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { describeWithTestEncoder, TINY_ENCODERS, testEncoderPath } from '../../support/test-encoder.js';

function open(folder: string) {
  const json = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const tokenizerJson = json('tokenizer.json');
  const tokenizer = new Tokenizer({ tokenizerJson, tokenizerConfig: json('tokenizer_config.json') });
  const template = textTemplate(parseTokenizerJson(tokenizerJson));
  const encode = (text: string) => tokenizer.encode(text, { addSpecialTokens: false, allowSpecial: false });
  return { tokenizer, template, encode };
}

function goldens<T>(name: string, field: string): T[] {
  const path = new URL(`../../goldens/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, 'utf8')) as Record<string, T[]>)[field]!;
}

interface Case {
  model: string;
  texts?: [string] | [string, string];
  ids: number[];
  types: number[];
}

const cases = goldens<Case>('encoders', 'cases').filter(({ texts }) => texts !== undefined);

describe.each(TINY_ENCODERS)('texts and pairs of %s', (model) => {
  const { template, encode } = open(tinyModelPath(model));

  it.each(cases.filter((one) => one.model === model))(
    'have the tokens and types of Hugging Face: $texts',
    (one) => {
      const texts = one.texts!.map(encode) as [Int32Array];
      const { tokenIds, tokenTypes } = applyTemplate(template, texts);
      expect([...tokenIds]).toEqual(one.ids);
      expect([...tokenTypes]).toEqual(one.types);
      expect(templateLength(texts.length === 1 ? template.single : template.pair)).toBe(
        one.ids.length - texts.reduce((sum, text) => sum + text.length, 0),
      );
    },
  );

  it('never have special tokens of a text (trap 14)', () => {
    const specials = model.startsWith('roberta') ? ['<s>', '</s>'] : ['[CLS]', '[SEP]'];
    const { tokenizer } = open(tinyModelPath(model));
    for (const special of specials) {
      expect([...encode(`the ${special} cat`)]).not.toContain(tokenizer.tokenId(special));
    }
  });
});

describeWithTestEncoder('texts of all-MiniLM-L6-v2', () => {
  it('have the tokens of Hugging Face', () => {
    const { template, encode } = open(testEncoderPath!);
    for (const { text, ids } of goldens<{ text: string; ids: number[] }>('minilm', 'texts')) {
      expect([...applyTemplate(template, [encode(text)]).tokenIds], text).toEqual(ids);
    }
  });
});

it('is the texts alone without a post-processor', () => {
  const json = parseTokenizerJson({ model: { vocab: {} }, post_processor: null });
  const pair = applyTemplate(textTemplate(json), [Int32Array.of(1), Int32Array.of(2, 3)]);
  expect([[...pair.tokenIds], [...pair.tokenTypes]]).toEqual([
    [1, 2, 3],
    [0, 1, 1],
  ]);
});

describe('texts are cut', () => {
  const lengths = (a: number, b: number, room: number) =>
    truncateTexts([new Int32Array(a), new Int32Array(b)] as const, room).map(({ length }) => length);

  it('at the end', () => {
    expect(truncateTexts([Int32Array.of(1, 2, 3)], 2).map((text) => [...text])).toEqual([[1, 2]]);
    expect(truncateTexts([Int32Array.of(1, 2)], 2)[0]!.length).toBe(2);
  });

  // Expected lengths are those of the tokenizers library for truncation with longest_first.
  it.each([
    [10, 4, 20, [10, 4]],
    [10, 4, 12, [8, 4]],
    [4, 10, 12, [4, 8]],
    [10, 10, 12, [6, 6]],
    [10, 10, 13, [6, 7]],
    [10, 4, 7, [4, 3]],
    [4, 10, 7, [3, 4]],
    [5, 5, 0, [0, 0]],
  ])('of %i and %i tokens to %i, the longer one first', (a, b, room, expected) => {
    expect(lengths(a, b, room)).toEqual(expected);
  });
});
