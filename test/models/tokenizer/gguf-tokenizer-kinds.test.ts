import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readGguf } from '../../../models/checkpoints/gguf.js';
import { Tokenizer, tokenizerFromGguf } from '../../../models/tokenizer/index.js';
import { type TypedValue, writeGguf } from '../../../tools/support/gguf-writer.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

interface Kind {
  metadata: {
    tokens: string[];
    types: number[];
    scores?: number[];
    merges?: string[];
    ids: Record<string, number>;
    flags?: Record<string, boolean>;
  };
  texts: { text: string; ids: number[]; decoded: string }[];
}

const KINDS = JSON.parse(
  readFileSync(new URL('../../goldens/gguf-tokenizers.json', import.meta.url), 'utf8'),
) as Record<string, Kind>;
const folder = temporaryFolder('skein-gguf-kinds');

function metadataOf(model: string, { tokens, types, scores, merges, ids, flags = {} }: Kind['metadata']) {
  const list = (of: 'string' | 'i32' | 'f32', value: unknown[]) =>
    ({ type: 'array', of, value }) as TypedValue;
  const named = <T>(values: Record<string, T>, ending: string, type: 'u32' | 'bool') =>
    Object.entries(values).map(([name, value]) => [
      `tokenizer.ggml.${name}${ending}`,
      { type, value } as TypedValue,
    ]);
  return Object.fromEntries<TypedValue>([
    ['tokenizer.ggml.model', { type: 'string', value: model }],
    ['tokenizer.ggml.tokens', list('string', tokens)],
    ['tokenizer.ggml.token_type', list('i32', types)],
    ...(scores === undefined
      ? []
      : ([['tokenizer.ggml.scores', list('f32', scores)]] as [string, TypedValue][])),
    ...(merges === undefined
      ? []
      : ([['tokenizer.ggml.merges', list('string', merges)]] as [string, TypedValue][])),
    ...(named(ids, '_token_id', 'u32') as [string, TypedValue][]),
    ...(named(flags, '', 'bool') as [string, TypedValue][]),
  ]);
}

function opened(name: string, change: (metadata: Record<string, TypedValue>) => void = () => {}) {
  const metadata = metadataOf(name, KINDS[name]!.metadata);
  change(metadata);
  const file = join(folder, `${name}.gguf`);
  writeGguf(file, metadata, []);
  return tokenizerFromGguf(readGguf(file).metadata);
}

describe.each(Object.entries(KINDS))('the tokenizer %s of a GGUF', (name, { texts }) => {
  const tokenizer = new Tokenizer(opened(name));

  it.each(texts)("encodes and decodes $text as Hugging Face's library does", ({ text, ids, decoded }) => {
    expect([...tokenizer.encode(text)]).toEqual(ids);
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe(decoded);
  });
});

describe('a GGUF with a tokenizer that cannot be made', () => {
  it.each<[string, string, (metadata: Record<string, TypedValue>) => void, RegExp]>([
    [
      'no scores',
      't5',
      (one) => delete one['tokenizer.ggml.scores'],
      /t5\.gguf: tokenizer\.ggml\.scores has no entries for \d+ tokens\.$/,
    ],
    [
      'no merges',
      'gemma4',
      (one) => delete one['tokenizer.ggml.merges'],
      /gemma4\.gguf: tokenizer\.ggml\.merges is missing\.$/,
    ],
    [
      'no token for unknown words',
      'bert',
      (one) => delete one['tokenizer.ggml.unknown_token_id'],
      /bert\.gguf: tokenizer\.ggml\.unknown_token_id, which the tokenizer 'bert' needs, is missing\.$/,
    ],
    [
      'a token beyond the vocabulary',
      't5',
      (one) => {
        one['tokenizer.ggml.unknown_token_id'] = { type: 'u32', value: 100_000 };
      },
      /unknown_token_id is 100000, the vocabulary has \d+ tokens/,
    ],
    [
      'rules of normalization that are none',
      't5',
      (one) => {
        one['tokenizer.ggml.precompiled_charsmap'] = { type: 'string', value: 'x' };
      },
      /tokenizer\.ggml\.precompiled_charsmap/,
    ],
    [
      'another kind',
      'bert',
      (one) => {
        one['tokenizer.ggml.model'] = { type: 'string', value: 'rwkv' };
      },
      /tokenizer\.ggml\.model is 'rwkv'; supported are 'gpt2' \(byte-level BPE\), .*'bert' \(WordPiece\)/,
    ],
  ])('%s', (_, name, change, message) => {
    expect(() => opened(name, change)).toThrow(message);
  });
});
