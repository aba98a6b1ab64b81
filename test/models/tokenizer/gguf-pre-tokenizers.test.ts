import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { knownPreTokenizers, preTokenization } from '../../../models/tokenizer/gguf-pre-tokenizers.js';
import { libraryOf } from './library-tokenizer.js';

const { texts, words } = JSON.parse(
  readFileSync(new URL('../../goldens/pre-tokenizers.json', import.meta.url), 'utf8'),
) as { texts: string[]; words: Record<string, string[]> };

const formOf = (name: string) => JSON.stringify(preTokenization(name)!.preTokenizer);
const judged = new Map(Object.entries(words).map(([name, expected]) => [formOf(name), expected]));

describe('the words of a GGUF', () => {
  it.each(knownPreTokenizers)('of %s are those of Hugging Face’s tokenizers', (name) => {
    const json = {
      added_tokens: [],
      pre_tokenizer: preTokenization(name)!.preTokenizer,
      model: { type: 'BPE', vocab: { a: 0 }, merges: [] },
    };
    const cutter = libraryOf(json).pre_tokenizer!;
    const found = texts.map((text) => cutter.pre_tokenize(text, { section_index: 0 }).join(' '));
    expect(found).toEqual(judged.get(formOf(name)));
  });

  it('have no words of a name that is not known', () => {
    for (const name of ['kimi-k3', 'gemma4', '']) expect(preTokenization(name)).toBeNull();
  });
});
