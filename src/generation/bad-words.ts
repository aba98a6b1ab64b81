import type { TextCodec } from './text-model.js';

/** What must not be generated: a text, or a sequence of tokens. */
export type BadWord = string | readonly number[];

/**
 * The sequences of tokens that stand for bad words. A text stands for two of them: as it is encoded by itself, and after
 * a space, which is another token where words carry the space before them. Other ways to spell it are not found.
 */
export async function badWordTokens(codec: TextCodec, words: readonly BadWord[]): Promise<number[][]> {
  const found = await Promise.all(
    words.map(async (word) => {
      if (typeof word !== 'string') return [[...word]];
      const texts = word.startsWith(' ') ? [word] : [word, ` ${word}`];
      const encoded = await Promise.all(texts.map((text) => codec.encodePiece(text)));
      return encoded.map((tokens) => [...tokens]);
    }),
  );
  const all = found.flat().filter((tokens) => tokens.length > 0);
  return [...new Map(all.map((tokens) => [tokens.join(), tokens])).values()];
}
