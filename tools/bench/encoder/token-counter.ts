import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { templateLength, textTemplate } from '../../../models/tokenizer/text-template.js';
import { parseTokenizerJson } from '../../../models/tokenizer/tokenizer-json.js';
import type { Tokenizer as TokenizerClass } from '../../../src/library/tokenizer.js';
import { compiled } from '../compiled.js';
import type { TokenCounter } from './workloads.js';

/** Counts by the tokenizer.json of a folder. */
export async function openCounter(folder: string): Promise<TokenCounter & { close(): Promise<void> }> {
  const { Tokenizer } = await compiled<{ Tokenizer: typeof TokenizerClass }>('src/index.js');
  const tokenizer = await Tokenizer.open(folder);
  const json = parseTokenizerJson(JSON.parse(await readFile(join(folder, 'tokenizer.json'), 'utf8')));
  const around = templateLength(textTemplate(json).single);
  return {
    around,
    countOf: async (text) => around + (await tokenizer.encode(text, { specialTokens: false })).length,
    close: () => tokenizer.close(),
  };
}
