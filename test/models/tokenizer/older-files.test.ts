import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { readTokenizer } from '../../../models/checkpoints/tokenizer-files.js';
import { Tokenizer } from '../../../models/tokenizer/index.js';
import { freshFolders } from '../../support/fresh-folders.js';

type Golden = Record<string, { text: string; ids: number[] }[]>;
const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const golden = JSON.parse(readFileSync(at('goldens/tokenizer-files.json'), 'utf8')) as Golden;
const MODEL = at('fixtures/tokenizer-files/tokenizer.model');
const OWN = JSON.parse(readFileSync(at('fixtures/tiny-mistral/tokenizer.json'), 'utf8')).model;

const fresh = freshFolders('skein-tokenizer-files');

/** A folder with such files, as texts, bytes or values of JSON. */
function folder(files: Record<string, unknown>): string {
  const directory = fresh();
  for (const [name, content] of Object.entries(files)) {
    const isRaw = typeof content === 'string' || content instanceof Uint8Array;
    writeFileSync(join(directory, name), isRaw ? content : JSON.stringify(content));
  }
  return directory;
}

const opened = (directory: string) => readTokenizer(directory, 500, null);
const idsOf = (directory: string, text: string) => [...new Tokenizer(opened(directory)).encode(text)];

const merges = `#version: 0.2\n${OWN.merges.map((one: string | string[]) => [one].flat().join(' ')).join('\n')}\n`;
const special = Object.fromEntries(
  ['<|im_start|>', '<|im_end|>'].map((content) => [OWN.vocab[content], { content, special: true }]),
);
const bpeFiles = (tokenizer_class: string) => ({
  'vocab.json': OWN.vocab,
  'merges.txt': merges,
  'tokenizer_config.json': { tokenizer_class, added_tokens_decoder: special },
});

describe('vocab.json and merges.txt', () => {
  it.each(['GPT2Tokenizer', 'Qwen2Tokenizer'])('give the ids of %s in transformers', (name) => {
    const directory = folder(bpeFiles(`${name}Fast`));
    for (const { text, ids } of golden[name]!) expect(idsOf(directory, text), text).toEqual(ids);
  });

  it('take added tokens from added_tokens.json, and special ones from special_tokens_map.json', () => {
    const { 'tokenizer_config.json': config, ...files } = bpeFiles('Qwen2Tokenizer');
    const directory = folder({
      ...files,
      'tokenizer_config.json': { tokenizer_class: config.tokenizer_class, eos_token: '<|im_end|>' },
      'added_tokens.json': { '<tool>': 400, '<|end|>': 401 },
      'special_tokens_map.json': { additional_special_tokens: ['<|end|>'], eos_token: 'overruled' },
    });
    const tokenizer = new Tokenizer(opened(directory));
    expect([...tokenizer.encode('<tool><|end|>')]).toEqual([400, 401]);
    expect(tokenizer.endTokenIds[0]).toBe(OWN.vocab['<|im_end|>']);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      'another class',
      { 'tokenizer_config.json': { tokenizer_class: 'RobertaTokenizer' } },
      /vocab\.json: is read together with a tokenizer_config\.json whose tokenizer_class is one of GPT2Tokenizer, Qwen2Tokenizer, found RobertaTokenizer/,
    ],
    ['no class', { 'tokenizer_config.json': {} }, /found nothing/],
    ['an id that is none', { 'vocab.json': { a: -1 } }, /the id of "a" should be a whole number/],
    [
      'half a merge',
      { 'merges.txt': 'a b\na\n' },
      /line 2 of merges\.txt next to it should have two symbols/,
    ],
    ['ids beyond the model', { 'vocab.json': { a: 500 } }, /vocab\.json: has a token with id 500/],
    [
      'an added token without an id',
      { 'added_tokens.json': { x: 'y' } },
      /an added token .* has no text or no id/,
    ],
  ])('are refused with %s', (_, change, message) => {
    const directory = folder({ ...bpeFiles('GPT2Tokenizer'), ...change });
    expect(() => opened(directory)).toThrow(CheckpointError);
    expect(() => opened(directory)).toThrow(message);
  });
});

describe('tokenizer.model', () => {
  const model = () => {
    const directory = fresh();
    cpSync(MODEL, join(directory, 'tokenizer.model'));
    return directory;
  };

  it('gives the ids of LlamaTokenizer in transformers, and of SentencePiece for texts without added tokens and a space in front', () => {
    const directory = model();
    writeFileSync(join(directory, 'tokenizer_config.json'), '{"add_bos_token":false}');
    for (const { text, ids } of golden.LlamaTokenizer!) expect(idsOf(directory, text), text).toEqual(ids);
    for (const { text, ids } of golden.SentencePiece!)
      if (!/^ |<(?:s|\/s|unk|sep)>/.test(text)) expect(idsOf(directory, text), text).toEqual(ids);
  });

  it('names the special tokens, and adds BOS unless tokenizer_config.json says otherwise', () => {
    const directory = model();
    const { tokenizerConfig } = opened(directory);
    expect(tokenizerConfig).toMatchObject({
      add_bos_token: true,
      bos_token: '<s>',
      eos_token: '</s>',
      unk_token: '<unk>',
    });
    writeFileSync(join(directory, 'tokenizer_config.json'), '{"add_bos_token":false}');
    expect(opened(directory).tokenizerConfig.add_bos_token).toBe(false);
  });

  it('is not looked at where there is a tokenizer.json, and missed where there is nothing', () => {
    const directory = folder({ 'tokenizer.json': { model: { type: 'BPE', vocab: { a: 0 }, merges: [] } } });
    writeFileSync(join(directory, 'tokenizer.model'), 'nonsense');
    expect(idsOf(directory, 'a')).toEqual([0]);
    expect(() => opened(fresh())).toThrow(
      /holds no tokenizer\.json, no vocab\.json with merges\.txt, and no tokenizer\.model\.$/,
    );
  });

  it('is read or refused whatever its bytes are', () => {
    const bytes = readFileSync(MODEL);
    const directory = fresh();
    const changes = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(changes, fc.oneof(fc.constant(bytes.length), fc.nat(bytes.length)), (changed, length) => {
        const copy = Buffer.from(bytes);
        for (const [place, value] of changed) copy[place] = value;
        writeFileSync(join(directory, 'tokenizer.model'), copy.subarray(0, length));
        try {
          readTokenizer(directory, 500, null);
        } catch (error) {
          if (!(error instanceof CheckpointError)) throw error;
        }
      }),
      { numRuns: 60 },
    );
  });

  it.each<[string, number[], RegExp]>([
    ['no pieces', [], /is no SentencePiece model/],
    ['the kind unigram', [0x0a, 0x03, 0x0a, 0x01, 0x61], /of the kind unigram, word or char/],
    [
      'rules of normalization',
      [0x0a, 0x03, 0x0a, 0x01, 0x61, 0x12, 0x02, 0x18, 0x02, 0x1a, 0x03, 0x12, 0x01, 0x07],
      /normalizes texts by rules of its own/,
    ],
  ])('with %s is refused', (_, bytes, message) => {
    expect(() => opened(folder({ 'tokenizer.model': Uint8Array.from(bytes) }))).toThrow(message);
  });
});
