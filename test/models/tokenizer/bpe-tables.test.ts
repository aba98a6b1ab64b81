import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeTablesFile, parseTablesFile, TABLES_FILE_NAME } from '../../../models/tokenizer/bpe-tables.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { readTokenizerFiles } from '../../../models/tokenizer/tokenizer-files.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { byteLevelFiles, SCRIPTS, sentencePieceFiles } from './tiny-tokenizers.js';

const KINDS = { 'a byte-level BPE': byteLevelFiles, 'a SentencePiece BPE': sentencePieceFiles };
const bits = fc.constantFrom(
  '<|x|>',
  '<|end|>',
  '<|',
  'x',
  '|>',
  'hello',
  ' ',
  'he',
  'll',
  '<s>',
  'the',
  ...SCRIPTS,
);

describe.each(Object.entries(KINDS))('the tables of %s', (_, makeFiles) => {
  const { tokenizerJson, tokenizerConfig } = makeFiles();
  const text = JSON.stringify(tokenizerJson);
  const file = makeTablesFile(text)!;
  const whole = new Tokenizer({ tokenizerJson, tokenizerConfig });
  const fromTables = new Tokenizer({ ...file, tokenizerConfig });

  it('hold the vocabulary and the merges, and the rest of the file has neither', () => {
    const { model } = tokenizerJson as { model: { vocab: Record<string, number>; merges: unknown[] } };
    const { vocab, merges } = model;
    expect(file.tables.tokens).toEqual(Object.keys(vocab).sort((a, b) => vocab[a]! - vocab[b]!));
    expect(file.tables.merges.length).toBeLessThanOrEqual(merges.length);
    expect((file.tokenizerJson as { model: object }).model).toMatchObject({ vocab: {}, merges: [] });
  });

  it('make the same tokenizer', () => {
    const named = ({
      vocabSize,
      bosTokenId,
      eosTokenId,
      padTokenId,
      unkTokenId,
      specialTokenIds,
    }: Tokenizer) => ({
      ...{ vocabSize, bosTokenId, eosTokenId, padTokenId, unkTokenId },
      special: [...specialTokenIds],
    });
    expect(named(fromTables)).toEqual(named(whole));
    for (let id = -1; id <= whole.vocabSize; id++) {
      expect(fromTables.tokenBytes(id)).toEqual(whole.tokenBytes(id));
    }
    fc.assert(
      fc.property(fc.array(bits), fc.boolean(), (parts, allowSpecial) => {
        const prompt = parts.join('');
        expect(fromTables.encode(prompt, { allowSpecial })).toEqual(whole.encode(prompt, { allowSpecial }));
      }),
    );
  });
});

describe('a tables file', () => {
  const folder = temporaryFolder('skein-tables');
  const { tokenizerJson } = byteLevelFiles();
  const text = JSON.stringify(tokenizerJson);
  const written = JSON.stringify(makeTablesFile(text));

  it('is read in the place of the tokenizer.json that it was made from', async () => {
    writeFileSync(join(folder, 'tokenizer.json'), text);
    writeFileSync(join(folder, TABLES_FILE_NAME), written);
    const { tables } = await readTokenizerFiles(folder);
    expect(tables).toEqual(makeTablesFile(text)!.tables);
  });

  it('does not count once tokenizer.json is another', async () => {
    writeFileSync(join(folder, TABLES_FILE_NAME), written);
    writeFileSync(join(folder, 'tokenizer.json'), `${text} `);
    const files = await readTokenizerFiles(folder);
    expect(files.tables).toBeUndefined();
    expect(files.tokenizerJson).toEqual(tokenizerJson);
  });

  it('does not count where it is cut off or of another version', () => {
    const source = Buffer.from(text);
    expect(parseTablesFile(written, source)).not.toBeNull();
    expect(parseTablesFile(written.slice(0, -1), source)).toBeNull();
    expect(parseTablesFile(written.replace('"version":1', '"version":0'), source)).toBeNull();
    expect(parseTablesFile('null', source)).toBeNull();
  });

  it('is not made of what it cannot hold', () => {
    const { model, ...rest } = tokenizerJson as { model: { vocab: Record<string, number> } };
    const withModel = (changed: object) => makeTablesFile(JSON.stringify({ ...rest, model: changed }));
    expect(withModel(model)).not.toBeNull();
    expect(withModel({ ...model, vocab: { ...model.vocab, gap: 999 } })).toBeNull();
    expect(withModel({ ...model, vocab: { ...model.vocab, twice: 0 } })).toBeNull();
    expect(withModel({ ...model, type: 'WordPiece' })).toBeNull();
    expect(withModel({ type: 'Unigram', vocab: [['a', 0]] })).toBeNull();
    expect(makeTablesFile('{"model": 1}')).toBeNull();
  });
});
