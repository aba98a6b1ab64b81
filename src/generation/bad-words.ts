import { encodeTexts } from './encode-texts.js';
import type { PromptTokens, TextCodec } from './text-model.js';

/** A text, or a sequence of tokens, that must not be generated. */
export type BadWord = string | readonly number[];

/**
 * Sequences of tokens that stand for bad words, each once. A text gives two of them: one as it is encoded by itself,
 * one after a space, which makes another token where words carry the space before them. Other spellings are not found.
 */
export async function badWordTokens(codec: TextCodec, words: readonly BadWord[]): Promise<number[][]> {
  const texts = [...new Set(words.flatMap((word) => (typeof word === 'string' ? spellings(word) : [])))];
  const encoded = await encodeTexts(codec, texts, { addSpecialTokens: false });
  const tokensOf = new Map(texts.map((text, i) => [text, encoded[i]!]));
  const all = words.flatMap((word): PromptTokens[] =>
    typeof word === 'string' ? spellings(word).map((text) => tokensOf.get(text)!) : [word],
  );
  const distinct = new Map<string, number[]>();
  for (const tokens of all) if (tokens.length > 0) distinct.set(tokens.join(), [...tokens]);
  return [...distinct.values()];
}

function spellings(word: string): string[] {
  return word.startsWith(' ') ? [word] : [word, ` ${word}`];
}
