import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type * as TokenizerModule from '../../../models/tokenizer/index.js';
import { readTokenizerFiles } from '../../../models/tokenizer/index.js';
import { byteLevelFiles, sentencePieceFiles } from './tiny-tokenizers.js';

// The pool's threads run compiled files, so this test takes the compiled module (npm run build:ts).
const compiled = new URL('../../../dist/models/tokenizer/index.js', import.meta.url).href;
const { PromptTimeError, Tokenizer, TokenizerPool } = (await import(compiled)) as typeof TokenizerModule;

type Json = Record<string, unknown>;

const CATASTROPHIC = '(a+)+$';
const ENDLESS = 'a'.repeat(40);
const split = { type: 'Split', pattern: { Regex: CATASTROPHIC }, behavior: 'Isolated', invert: false };
const replace = { type: 'Replace', pattern: { Regex: CATASTROPHIC }, content: 'a' };
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };

function filesWith(
  changes: Json,
): TokenizerModule.TokenizerSource & { files: ReturnType<typeof byteLevelFiles> } {
  const files = byteLevelFiles();
  return { files: { ...files, tokenizerJson: { ...(files.tokenizerJson as Json), ...changes } } };
}

const PLACES: [string, Json][] = [
  ['a Split', { pre_tokenizer: split }],
  ['a Split in Sequences', { pre_tokenizer: sequence('pretokenizers', sequence('pretokenizers', split)) }],
  ['a Split that removes', { pre_tokenizer: { ...split, behavior: 'Removed' } }],
  ['an inverted Split', { pre_tokenizer: { ...split, invert: true } }],
  ['a Replace before the words', { pre_tokenizer: replace }],
  ['a normalizer', { normalizer: replace }],
  ['a normalizer in Sequences', { normalizer: sequence('normalizers', sequence('normalizers', replace)) }],
];

function sequence(key: string, part: Json): Json {
  return { type: 'Sequence', [key]: [part, ...(key === 'pretokenizers' ? [byteLevel] : [])] };
}

describe('a pattern that never ends', () => {
  it.each(PLACES)('is worked on by a thread that can be ended: %s', async (_, changes) => {
    const source = filesWith(changes);
    const tokenizer = new Tokenizer(source.files);
    expect(tokenizer.unproven).toMatch(/pattern "\(a\+\)\+\$" of its (Split|Replace) may take long/);
    const pool = new TokenizerPool(tokenizer, source, { timeLimitMs: 100 });
    try {
      const endless = pool.encode(`${ENDLESS}!`);
      // This thread has not, which could not say so otherwise.
      expect(pool.jobs).toBe(1);
      await expect(endless).rejects.toThrow(PromptTimeError);
    } finally {
      await pool.close();
    }
  });

  it('does not keep others waiting', async () => {
    const source = filesWith({ pre_tokenizer: split });
    const tokenizer = new Tokenizer(source.files);
    const pool = new TokenizerPool(tokenizer, source, { timeLimitMs: 600_000 });
    const endless = pool.encode(`${ENDLESS}!`);
    for (const text of ['hello!', 'world']) expect(await pool.encode(text)).toEqual(tokenizer.encode(text));
    expect(pool.jobs).toBe(1);
    await Promise.all([expect(endless).rejects.toThrow('The pool was closed'), pool.close()]);
  });

  it('is of no account in a decoder, whose tokens have fixed bytes', () => {
    const decoders = [
      { type: 'Replace', pattern: { Regex: CATASTROPHIC }, content: '' },
      { type: 'ByteLevel' },
    ];
    const { files } = filesWith({ decoder: { type: 'Sequence', decoders } });
    const tokenizer = new Tokenizer(files);
    const tokens = tokenizer.encode(`${ENDLESS}!`, { addSpecialTokens: false });
    expect(tokenizer.decode(tokens)).toBe(`${ENDLESS}!`);
    expect(tokenizer.unproven).toBe(null);
  });

  it('is given up when a start needs it for an added token', () => {
    const { files } = filesWith({
      normalizer: replace,
      added_tokens: [{ id: 300, content: `${ENDLESS}!`, normalized: true }],
    });
    expect(() => new Tokenizer(files)).toThrow(
      /the normalizer does not get through with the added token "aaa/,
    );
  });
});

describe('a tokenizer is unproven', () => {
  const vocab = (text: string) => {
    const { model } = byteLevelFiles().tokenizerJson as { model: { vocab: Json } };
    return { model: { ...model, vocab: { ...model.vocab, [text]: Object.keys(model.vocab).length } } };
  };
  it.each<[string, Json]>([
    [
      'that makes texts much longer',
      { normalizer: { ...replace, pattern: { String: 'a' }, content: 'b'.repeat(99) } },
    ],
    [
      'that doubles again and again',
      {
        normalizer: {
          type: 'Sequence',
          normalizers: Array(8).fill({ ...replace, pattern: { String: 'a' }, content: 'aa' }),
        },
      },
    ],
    [
      'that puts the rest of a text in',
      { normalizer: { ...replace, pattern: { String: 'a' }, content: "$'" } },
    ],
    ['of many components', { pre_tokenizer: { type: 'Sequence', pretokenizers: Array(17).fill(byteLevel) } }],
    ['with an endless entry', vocab('x'.repeat(2000))],
    ['with endless words', { model: { ...vocab('x').model, max_input_chars_per_word: 100_000 } }],
  ])('%s', (_, changes) => {
    expect(new Tokenizer(filesWith(changes).files).unproven).toEqual(expect.any(String));
  });
});

describe('every ordinary tokenizer', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const textOf = (path: string) => readFileSync(path, 'latin1');
  const folders = readdirSync(`${root}/test/fixtures`)
    .map((name) => `${root}/test/fixtures/${name}`)
    .concat(`${root}/models/demo/gosling`, process.env.SKEIN_TEST_MODEL ?? [])
    .filter((folder) => existsSync(`${folder}/tokenizer.json`))
    // Many models share a tokenizer.
    .filter(
      (folder, i, all) =>
        all.findIndex((other) => textOf(`${other}/tokenizer.json`) === textOf(`${folder}/tokenizer.json`)) ===
        i,
    );
  it.each(folders)('is proven, and has the same ids in a thread: %s', async (folder) => {
    const files = await readTokenizerFiles(folder);
    const tokenizer = new Tokenizer(files);
    expect(tokenizer.unproven).toBe(null);
    const pool = new TokenizerPool(tokenizer, { files }, { threshold: 1 });
    try {
      for (const text of ['Hello, world! 漢字 123\n\n  x', 'a'.repeat(3000), 'é \u0301'.repeat(300)]) {
        expect(await pool.encode(text)).toEqual(tokenizer.encode(text));
      }
    } finally {
      await pool.close();
    }
  });

  it('is proven out of a SentencePiece model too', () => {
    expect(new Tokenizer(sentencePieceFiles()).unproven).toBe(null);
  });
});
