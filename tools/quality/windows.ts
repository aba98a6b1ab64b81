import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Tokenizer } from '../../models/tokenizer/index.js';

/** Number of tokens of a window, each of which is a sequence of its own. */
export const WINDOW = 256;
const WINDOWS_MAX = 4;

/** The tokens of a text, in windows. @throws where it is shorter than one. */
export function windowsOf(tokenizer: Tokenizer, text: string): number[][] {
  const ids = [...tokenizer.encode(text)];
  const count = Math.min(WINDOWS_MAX, Math.floor(ids.length / WINDOW));
  if (count === 0)
    throw new Error(`quality: the text has ${ids.length} tokens, at least ${WINDOW} are needed`);
  return Array.from({ length: count }, (_, i) => ids.slice(i * WINDOW, (i + 1) * WINDOW));
}

/** The text of a file, or of the LICENSE. */
export function textOf(file: string | undefined): string {
  return readFileSync(file || fileURLToPath(new URL('../../LICENSE', import.meta.url)), 'utf8');
}
