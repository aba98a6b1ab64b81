import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';

/**
 * The bytes of each token that a guide may choose, [vocabSize]; null for the others: special tokens, which are no text, and
 * places of the model's vocabulary that the tokenizer leaves empty.
 */
export async function vocabularyBytes(
  engineDirectory: string,
  vocabSize: number,
): Promise<(Uint8Array | null)[]> {
  const tokenizer = new Tokenizer(await readTokenizerFiles(engineDirectory));
  return Array.from({ length: vocabSize }, (_, token) =>
    token >= tokenizer.vocabSize || tokenizer.specialTokenIds.has(token) ? null : tokenizer.tokenBytes(token),
  );
}
