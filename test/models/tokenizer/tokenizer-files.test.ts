import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readTokenizerFiles } from '../../../models/tokenizer/tokenizer-files.js';

describe('readTokenizerFiles', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'skein-files-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  it('needs tokenizer.json only', async () => {
    await expect(readTokenizerFiles(folder)).rejects.toThrow(/has no tokenizer\.json/);
    write('tokenizer.json', '{"a": 1}');
    expect(await readTokenizerFiles(folder)).toEqual({
      tokenizerJson: { a: 1 },
      tokenizerConfig: {},
      chatTemplate: null,
    });
  });

  it('takes the chat template of the folder, or else the default one of the configuration', async () => {
    write('tokenizer.json', '{}');
    const named = [
      { name: 'tool_use', template: 'tools' },
      { name: 'default', template: 'plain' },
    ];
    write('tokenizer_config.json', JSON.stringify({ chat_template: named }));
    expect((await readTokenizerFiles(folder)).chatTemplate).toBe('plain');
    write('tokenizer_config.json', '{"chat_template": "one"}');
    expect((await readTokenizerFiles(folder)).chatTemplate).toBe('one');
    write('chat_template.jinja', 'own');
    expect((await readTokenizerFiles(folder)).chatTemplate).toBe('own');
  });

  it('names the file that is not JSON', async () => {
    write('tokenizer.json', '{');
    await expect(readTokenizerFiles(folder)).rejects.toThrow(/tokenizer\.json is not JSON/);
  });
});
