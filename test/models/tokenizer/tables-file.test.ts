import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { BpeTables } from '../../../models/tokenizer/bpe-tables.js';
import { makeTablesFile, TABLES_FILE_NAME } from '../../../models/tokenizer/tables-file.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { readTokenizerFiles } from '../../../models/tokenizer/tokenizer-files.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { byteLevelFiles, SCRIPTS, sentencePieceFiles } from './tiny-tokenizers.js';

const KINDS = { 'a byte-level BPE': byteLevelFiles, 'a SentencePiece BPE': sentencePieceFiles };
const fixtureFile = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/${name}/tokenizer.json`, import.meta.url));
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

const folder = temporaryFolder('skein-tables');
function write(tokenizerText: string, tables: Uint8Array): void {
  writeFileSync(join(folder, 'tokenizer.json'), tokenizerText);
  writeFileSync(join(folder, TABLES_FILE_NAME), tables);
}

describe.each(Object.entries(KINDS))('the tables of %s', (_, makeFiles) => {
  const { tokenizerJson, tokenizerConfig } = makeFiles();
  const whole = new Tokenizer({ tokenizerJson, tokenizerConfig });
  let files: Awaited<ReturnType<typeof readTokenizerFiles>>;
  beforeAll(async () => {
    const text = JSON.stringify(tokenizerJson);
    write(text, makeTablesFile(text)!);
    files = await readTokenizerFiles(folder);
  });

  it('hold the vocabulary and the merges, and the rest of the file has neither', () => {
    const { model } = tokenizerJson as { model: { vocab: Record<string, number> } };
    const tables = new BpeTables(files.tables!);
    for (const [text, id] of Object.entries(model.vocab)) {
      expect(tables.textOf(id)).toBe(text);
      expect(tables.idOf(text)).toBe(id);
    }
    expect((files.tokenizerJson as { model: object }).model).toMatchObject({ vocab: {}, merges: [] });
  });

  it('make the same tokenizer', () => {
    const fromTables = new Tokenizer({ ...files, tokenizerConfig });
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
  const { tokenizerJson } = byteLevelFiles();
  const text = JSON.stringify(tokenizerJson);
  const made = makeTablesFile(text)!;

  it('does not count once tokenizer.json is another', async () => {
    write(`${text} `, made);
    const files = await readTokenizerFiles(folder);
    expect(files.tables).toBeUndefined();
    expect(files.tokenizerJson).toEqual(tokenizerJson);
  });

  it('does not count where it is damaged, cut off or of another version', async () => {
    const changed = (change: (file: Buffer) => Uint8Array) => {
      write(text, change(Buffer.from(made)));
      return readTokenizerFiles(folder);
    };
    expect((await changed((file) => file)).tables).toBeDefined();
    const wrong: ((file: Buffer) => Uint8Array)[] = [
      (file) => file.subarray(0, -1),
      (file) => file.subarray(0, 100),
      (file) => file.subarray(0, 3),
      (file) => Buffer.concat([file, Buffer.alloc(4)]),
      (file) => Buffer.from(file.toString('latin1').replace('"version":3', '"version":1'), 'latin1'),
      (file) => Buffer.from(file.fill(0xff, 0, 4)),
      (file) => file.fill(0xff, 32, 36),
      (file) => file.fill(file.at(-5)! ^ 1, file.length - 5, file.length - 4),
      (file) => file.fill('x', 50, 51),
      () => Buffer.from('\x04\0\0\0null'),
      () => Buffer.from('\x06\0\0\0null  '),
    ];
    for (const change of wrong) {
      const files = await changed(change);
      expect(files.tables, String(change)).toBeUndefined();
      expect(files.tokenizerJson).toEqual(tokenizerJson);
    }
  });

  it('is not made of what is no BPE, or no tokenizer', () => {
    expect(makeTablesFile(readFileSync(fixtureFile('tiny-bert-mean'), 'utf8'))).toBeNull();
    expect(makeTablesFile('{"model": 1}')).toBeNull();
  });
});
