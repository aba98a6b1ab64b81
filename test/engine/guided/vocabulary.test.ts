import { expect, it } from 'vitest';
import { specialBytes } from '../../../engine/guided/special-bytes.js';
import { vocabularyBytes } from '../../../engine/guided/vocabulary.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';

it('no tokens but the special ones can spell a special token', async () => {
  // In this vocabulary each byte is a token.
  const vocabulary = await vocabularyBytes(tinyModelPath('gqa'), 330);
  expect(vocabulary.slice(0, 3)).toEqual(['<|endoftext|>', '<|im_start|>', '<|im_end|>'].map(specialBytes));
  const others = vocabulary.slice(3, 320);
  expect(others.flatMap((bytes) => Array.from(bytes ?? [])).filter((byte) => byte >= 0xfe)).toEqual([]);
  // Two bytes that are in no text; and what is after the vocabulary.
  expect(others.filter((bytes) => bytes === null)).toHaveLength(2);
  expect(vocabulary.slice(320)).toEqual(new Array(10).fill(null));
});
