import { encodeTexts } from './encode-texts.js';
import type { PromptTokens, TextCodec } from './text-model.js';

/** What must not be generated: a text, or a sequence of tokens. */
export type BadWord = string | readonly number[];

/**
 * The sequences of tokens that stand for bad words, each once. A text stands for two of them: as it is encoded by itself, and
 * after a space, which is another token where words carry the space before them. Other ways to spell it are not found.
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
