import { describe, expect, it } from 'vitest';
import { BREAKER_SEQUENCES_MAX, dryBreakerTokens } from '../../../src/generation/dry-breakers.js';
import type { TextCodec } from '../../../src/generation/text-model.js';

/** A codec whose tokens are these texts; a text is encoded letter by letter. */
function codecOf(words: readonly string[]) {
  let reads = 0;
  const codec = {
    tokenBytes: (token: number) => {
      reads++;
      return Buffer.from(words[token]!);
    },
    encodePiece: (text: string) =>
      Int32Array.from([...text], (letter) => words.indexOf(letter)) as unknown as number[],
    encodeText: () => [],
  };
  return { codec: codec as unknown as TextCodec, reads: () => reads };
}

const WORDS = ['a', 'b', 'c', 'xaby', 'ab', 'xa', 'bc', 'q'];
const sorted = (sequences: readonly number[][]) => sequences.map((sequence) => sequence.join()).sort();

describe('breakers of DRY', () => {
  it('are found alone in a token, and over the end of one', async () => {
    const { codec } = codecOf(WORDS);
    expect(sorted(await dryBreakerTokens(codec, WORDS.length, ['ab']))).toEqual(['0,1', '3', '4', '5,1']);
    expect(sorted(await dryBreakerTokens(codec, WORDS.length, ['q', [1, 2], 'q', [1, 2]]))).toEqual([
      '1,2',
      '7',
    ]);
  });

  it('are looked up once for a model', async () => {
    const { codec, reads } = codecOf(WORDS);
    for (let i = 0; i < 3; i++) await dryBreakerTokens(codec, WORDS.length, ['ab', 'q']);
    await dryBreakerTokens(codec, WORDS.length, ['bc']);
    expect(reads()).toBe(WORDS.length);
  });

  it('that stand for too many sequences together end the search for more of them', async () => {
    const words = Array.from({ length: 4 * BREAKER_SEQUENCES_MAX }, (_, i) => `e${i}`);
    const { codec, reads } = codecOf(words);
    const many = dryBreakerTokens(codec, words.length, ['e', '1', '2']);
    await expect(many).rejects.toThrow(
      'The breakers stand for more than 16384 sequences of tokens; leave out those that many words hold.',
    );
    expect(reads()).toBeLessThanOrEqual(BREAKER_SEQUENCES_MAX + 1);
  });
});
