import { expect, it } from 'vitest';
import { rowsOfInputs } from '../../../src/encoding/embed-pictures.js';
import type { EncodedPicture } from '../../../src/encoding/picture-encoder.js';

it('asks for rows by the salt of the request, and tells of each that is there', async () => {
  const salts: (bigint | undefined)[] = [];
  const picture = (value: number): EncodedPicture => ({
    tokens: 1,
    bytes: 1,
    decode: async () => ({
      row: async (salt) => {
        salts.push(salt);
        return Float32Array.of(value);
      },
    }),
  });
  let told = 0;
  const pictures = [picture(1), picture(2)];
  const rows = await rowsOfInputs(pictures, { signal: undefined, salt: 7n }, () => told++);
  await rowsOfInputs(pictures, { signal: undefined }, () => told++);
  expect(rows.map(([value]) => value)).toEqual([1, 2]);
  expect([salts, told]).toEqual([[7n, 7n, undefined, undefined], 4]);
});
