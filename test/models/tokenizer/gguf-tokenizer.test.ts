import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gguf } from '@huggingface/gguf';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { GgufMetadata, type GgufValue } from '../../../models/checkpoints/gguf-metadata.js';
import { tokenizerFromGguf } from '../../../models/tokenizer/gguf-tokenizer.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { draws } from '../../support/scale.js';
import { describeWithTestModel, testModelPath } from '../../support/test-model.js';
import { byteLevelAlphabet, SCRIPTS } from './tiny-tokenizers.js';

const plain = { addSpecialTokens: false };

function metadata(entries: Record<string, GgufValue>): GgufMetadata {
  return new GgufMetadata('model.gguf', Object.entries(entries));
}

/** Byte-level tokens, merges of digits, letters and spaces, one control and one user-defined token. */
function bpe(pre: string, more: Record<string, GgufValue> = {}): GgufMetadata {
  const merges = ['1 2', '12 3', 'a b', 'Ġ a', 'Ġa b', 'a B', 'Ġ Ġ', '! !'];
  const tokens = [
    ...byteLevelAlphabet(),
    ...merges.map((merge) => merge.replace(' ', '')),
    '<|end|>',
    '<think>',
  ];
  const types = Int32Array.from(tokens, () => 1);
  types[tokens.length - 2] = 3;
  types[tokens.length - 1] = 4;
  return metadata({
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': pre,
    'tokenizer.ggml.tokens': tokens,
    'tokenizer.ggml.merges': merges,
    'tokenizer.ggml.token_type': types,
    'tokenizer.ggml.eos_token_id': tokens.length - 2,
    'tokenizer.ggml.bos_token_id': tokens.length - 2,
    ...more,
  });
}

/** Pieces of a text as the tokenizer cut it. */
function pieces(tokenizer: Tokenizer, text: string): string[] {
  return Array.from(tokenizer.encode(text, plain), (id) => tokenizer.decode([id]));
}

describe('tokenizerFromGguf, byte-level', () => {
  it.each([
    ['smollm', 'ab 123', ['ab', ' ', '1', '2', '3']],
    ['gpt-2', 'ab 123', ['ab', ' ', '123']],
    ['llama-bpe', 'ab 123', ['ab', ' ', '123']],
    ['qwen2', 'ab 123', ['ab', ' ', '1', '2', '3']],
    ['tekken', 'ab123 aB', ['ab', '1', '2', '3', ' a', 'B']],
    ['gpt-4o', 'aB 123', ['a', 'B', ' ', '123']],
    ['deepseek-v3', 'ab123!!', ['ab', '123', '!!']],
    ['deepseek-coder', 'ab 123', ['ab', ' ', '1', '2', '3']],
    ['falcon', 'ab!! 123', ['ab', '!!', ' ', '123']],
    ['default', 'ab 123', ['ab', ' ', '123']],
  ])('cuts words as %s does', (pre, text, expected) => {
    expect(pieces(new Tokenizer(tokenizerFromGguf(bpe(pre))), text)).toEqual(expected);
  });

  it('finds control and user-defined tokens, and marks only where they are allowed', () => {
    const tokenizer = new Tokenizer(tokenizerFromGguf(bpe('gpt-2')));
    const [end, think] = [tokenizer.tokenId('<|end|>')!, tokenizer.tokenId('<think>')!];
    expect([...tokenizer.specialTokenIds]).toEqual([end]);
    expect([...tokenizer.encode('<think><|end|>', plain)]).toEqual([think, end]);
    const asText = tokenizer.encode('<think><|end|>', { addSpecialTokens: false, allowSpecial: false });
    expect([...asText]).not.toContain(think);
    expect([...asText]).not.toContain(end);
    expect(tokenizer.decode(asText)).toBe('<think><|end|>');
  });

  it('adds BOS where the file says so, or else where the family does', () => {
    const first = (source: GgufMetadata) => new Tokenizer(tokenizerFromGguf(source)).encode('a')[0];
    const bos = new Tokenizer(tokenizerFromGguf(bpe('gpt-2'))).bosTokenId;
    expect(first(bpe('gpt-2'))).toBe(97);
    expect(first(bpe('llama-bpe'))).toBe(bos);
    expect(first(bpe('llama-bpe', { 'tokenizer.ggml.add_bos_token': false }))).toBe(97);
    expect(first(bpe('gpt-2', { 'tokenizer.ggml.add_bos_token': true }))).toBe(bos);
  });

  it('carries the chat template and prefers an original tokenizer.json', () => {
    const original = { model: { type: 'BPE', vocab: { x: 0 }, merges: [] } };
    const files = tokenizerFromGguf(
      bpe('gpt-2', {
        'tokenizer.chat_template': '{{ x }}',
        'tokenizer.huggingface.json': JSON.stringify(original),
      }),
    );
    expect(files.chatTemplate).toBe('{{ x }}');
    expect(files.tokenizerJson).toEqual(original);
    expect(tokenizerFromGguf(bpe('gpt-2')).chatTemplate).toBeNull();
  });
});

describe('tokenizerFromGguf, SentencePiece', () => {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  );
  const normal = ['▁', 'h', 'e', 'l', 'o', '▁h', 'he', 'll', 'hell', 'hello', '▁hello', 'lo', '▁▁'];
  const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...normal, '<|im_end|>'];
  const order = ['he', 'll', 'hell', 'hello', '▁hello', '▁h', 'lo', '▁▁'];
  const scores = Float32Array.from(tokens, (token) =>
    order.includes(token) ? -order.indexOf(token) - 1 : -100,
  );
  const types = Int32Array.from(tokens, (token, id) =>
    id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : token === '<|im_end|>' ? 4 : 1,
  );
  const source = (more: Record<string, GgufValue> = {}) =>
    metadata({
      'tokenizer.ggml.model': 'llama',
      'tokenizer.ggml.tokens': tokens,
      'tokenizer.ggml.scores': scores,
      'tokenizer.ggml.token_type': types,
      'tokenizer.ggml.unknown_token_id': 0,
      'tokenizer.ggml.bos_token_id': 1,
      'tokenizer.ggml.eos_token_id': 2,
      ...more,
    });
  const tokenizer = new Tokenizer(tokenizerFromGguf(source()));
  const entries = (text: string) =>
    Array.from(tokenizer.encode(text), (id) => tokens[id]).filter((entry) => entry !== '<s>');

  it('merges by score, puts a space before the text and falls back to bytes', () => {
    expect([...tokenizer.encode('hello')]).toEqual([1, tokens.indexOf('▁hello')]);
    expect(entries('hello hello')).toEqual(['▁hello', '▁hello']);
    expect(entries('lol')).toEqual(['▁', 'lo', 'l']);
    expect(entries('é')).toEqual(['▁', '<0xC3>', '<0xA9>']);
    expect(entries('<|im_end|>')).toEqual(['<|im_end|>']);
  });

  it('reads byte tokens in a text as text', () => {
    expect(entries('<0x68>')).not.toContain('<0x68>');
    expect(tokenizer.decode(tokenizer.encode('<0x68>', plain))).toBe('<0x68>');
  });

  it('leaves the space out where the file says so', () => {
    const bare = new Tokenizer(tokenizerFromGguf(source({ 'tokenizer.ggml.add_space_prefix': false })));
    expect([...bare.encode('hello', plain)]).toEqual([tokens.indexOf('hello')]);
    expect(bare.decode(bare.encode(' hello', plain))).toBe(' hello');
  });

  it.each(SCRIPTS)('returns the text %j', (text) => {
    expect(tokenizer.decode(tokenizer.encode(text, plain))).toBe(text);
  });

  it('returns any text; SentencePiece writes a space as U+2581 and cannot tell the two apart afterwards', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const withSpaces = text.replaceAll('\u2581', ' ');
        expect(tokenizer.decode(tokenizer.encode(text, plain))).toBe(withSpaces);
      }),
      { examples: [['\u2581'], ['a\u2581b']] },
    );
  });
});

describe('tokenizerFromGguf refuses', () => {
  it.each([
    [metadata({}), /model\.gguf: tokenizer\.ggml\.model is missing/],
    [metadata({ 'tokenizer.ggml.model': 'rwkv' }), /is 'rwkv'; supported are 'gpt2'/],
    [metadata({ 'tokenizer.ggml.model': 'gpt2' }), /tokenizer\.ggml\.tokens is missing/],
    [bpe('mystery'), /'mystery' is not known; .*command-r.*smollm/],
    [bpe('gpt-2', { 'tokenizer.ggml.token_type': Int32Array.of(1) }), /has 1 entries for \d+ tokens/],
    [
      bpe('gpt-2', { 'tokenizer.ggml.eos_token_id': 9999 }),
      /eos_token_id is 9999, the vocabulary has \d+ tokens/,
    ],
    [
      bpe('gpt-2', { 'tokenizer.ggml.model': 'llama' }),
      /tokenizer\.ggml\.scores has no entries for \d+ tokens/,
    ],
  ])('what it cannot read: case %#', (source, message) => {
    expect(() => tokenizerFromGguf(source)).toThrow(CheckpointError);
    expect(() => tokenizerFromGguf(source)).toThrow(message);
  });
});

describeWithTestModel("SmolLM2's GGUF", () => {
  let fromGguf: Tokenizer;
  let original: Tokenizer;

  beforeAll(async () => {
    const file = readdirSync(testModelPath!).find((name) => name.endsWith('.gguf'))!;
    const parsed = await gguf(join(testModelPath!, file), { allowLocalFile: true });
    const values = parsed.metadata as unknown as Record<string, GgufValue>;
    const types = Int32Array.from(values['tokenizer.ggml.token_type'] as Iterable<number>);
    const source = metadata({ ...values, 'tokenizer.ggml.token_type': types });
    fromGguf = new Tokenizer(tokenizerFromGguf(source));
    original = new Tokenizer({
      tokenizerJson: JSON.parse(readFileSync(join(testModelPath!, 'tokenizer.json'), 'utf8')),
      tokenizerConfig: {},
    });
  });

  it('names the special tokens', () => {
    expect([fromGguf.bosTokenId, fromGguf.eosTokenId, fromGguf.padTokenId, fromGguf.unkTokenId]).toEqual([
      1, 2, 2, 0,
    ]);
    expect([...fromGguf.specialTokenIds]).toEqual([...original.specialTokenIds]);
    expect(fromGguf.vocabSize).toBe(original.vocabSize);
  });

  it('encodes the goldens and slices of this source tree like tokenizer.json', () => {
    const goldens = JSON.parse(
      readFileSync(new URL('../../goldens/tokenizer-smollm2.json', import.meta.url), 'utf8'),
    ) as { texts: { text: string; ids: number[] }[] };
    for (const { text, ids } of goldens.texts) expect([...fromGguf.encode(text)]).toEqual(ids);
    const files = ['models/tokenizer', 'test/models/tokenizer'].flatMap((folder) =>
      readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')),
    );
    let slices = 0;
    for (const file of files) {
      for (let start = 0; start < file.length; start += 171) {
        const slice = file.slice(start, start + 171);
        expect(fromGguf.encode(slice)).toEqual(original.encode(slice));
        slices++;
      }
    }
    expect(slices).toBeGreaterThan(300);
  });

  it('encodes any text like tokenizer.json', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom('1', '٣', ' ', '\n', 'a', "'", 's', '<|im_end|>', '\u0085', '½') }),
    );
    fc.assert(
      fc.property(text, fc.boolean(), (input, allowSpecial) => {
        expect(fromGguf.encode(input, { allowSpecial })).toEqual(original.encode(input, { allowSpecial }));
      }),
      { numRuns: draws(100) },
    );
  });

  it('has every token’s bytes like tokenizer.json', () => {
    for (let id = 0; id < original.vocabSize; id++) {
      if (Buffer.compare(fromGguf.tokenBytes(id), original.tokenBytes(id)) !== 0) {
        expect([id, fromGguf.tokenBytes(id)]).toEqual([id, original.tokenBytes(id)]);
      }
    }
  });
});
