import { readTokenizerFiles, Tokenizer } from '../../models/tokenizer/index.js';
import { hasSpecialBytes, specialBytes } from './special-bytes.js';

/**
 * Bytes of each token that a guide may choose, [vocabSize]; null for ids of the model's vocabulary that the tokenizer does
 * not use, and for bytes that occur in no text. Special tokens are no text: they have bytes of their own.
 */
export async function vocabularyBytes(
  engineDirectory: string,
  vocabSize: number,
): Promise<(Uint8Array | null)[]> {
  const tokenizer = new Tokenizer(await readTokenizerFiles(engineDirectory));
  return Array.from({ length: vocabSize }, (_, token) => {
    if (token >= tokenizer.vocabSize) return null;
    const bytes = tokenizer.tokenBytes(token);
    if (tokenizer.specialTokenIds.has(token)) return specialBytes(Buffer.from(bytes).toString());
    return hasSpecialBytes(bytes) ? null : bytes;
  });
}
