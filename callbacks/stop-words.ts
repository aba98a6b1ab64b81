import { input, says } from '../base/named-text.js';
import { ParameterError } from './sampling-params.js';

/**
 * Decodes the [1, 2, n] layout of stop_words_list: row 0 holds the tokens of all words, row 1 the inclusive
 * scan of their lengths, padded with -1.
 *
 *   [[5, 7, 3, 9, 2],      words 5 7 3 | 9 2
 *    [3, 5, -1, -1, -1]]   ends     ^3    ^5
 */
export function decodeWordList(field: string, shape: readonly number[], data: Int32Array): Int32Array[] {
  const n = shape[2] ?? 0;
  const words: Int32Array[] = [];
  let start = 0;
  for (let i = 0; i < n; i++) {
    const end = data[n + i]!;
    if (end === -1) break;
    if (end <= start || end > n) {
      throw new ParameterError(
        field,
        says`${input(field)} has the offset ${end} at place ${i}; offsets must rise from ${start + 1} to at most ${n} (the tokens given), padded with -1.`,
      );
    }
    words.push(data.slice(start, end));
    start = end;
  }
  return words;
}

/** The inverse of decodeWordList: shape [1, 2, n] and data, n >= 1. */
export function encodeWordList(words: readonly (readonly number[])[]): { shape: number[]; data: Int32Array } {
  const total = words.reduce((sum, word) => sum + word.length, 0);
  const n = Math.max(total, words.length, 1);
  const data = new Int32Array(2 * n).fill(-1, n);
  let end = 0;
  for (const [i, word] of words.entries()) {
    data.set(word, end);
    end += word.length;
    data[n + i] = end;
  }
  return { shape: [1, 2, n], data };
}

/**
 * The tokens that end a generation on their own: the end token (-1 = none) and the stop words of one token, each once.
 * Tokens outside the vocabulary are left out, since they are never drawn.
 */
export function endingTokens(endId: number, words: readonly Int32Array[], vocabSize: number): Int32Array {
  const tokens = [endId, ...words.filter((word) => word.length === 1).map((word) => word[0]!)];
  return Int32Array.from(new Set(tokens.filter((token) => token >= 0 && token < vocabSize)));
}

/**
 * Number of different tokens that can be the last of a generation: the end token (-1 = none) and the last tokens of
 * stop words.
 */
export function countEndings(endId: number, words: readonly Int32Array[]): number {
  const tokens = new Set(words.map((word) => word.at(-1)!));
  if (endId >= 0) tokens.add(endId);
  return tokens.size;
}

/** True where tokens[start .. end) ends with one of the words. Tokens before `start` (the prompt) never count. */
export function endsWithStopWord(
  words: readonly Int32Array[],
  tokens: Int32Array,
  start: number,
  end: number,
): boolean {
  for (const word of words) {
    const first = end - word.length;
    if (first < start) continue;
    let i = 0;
    while (i < word.length && tokens[first + i] === word[i]) i++;
    if (i === word.length) return true;
  }
  return false;
}
