import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { vectorOfType } from '../../../src/encoding/vector-types.js';

describe('the types of an embedding', () => {
  // sentence-transformers' quantize_embeddings of the same rows.
  it.each([
    [
      [
        2.041, -2.556, 0.418, 0, -0.453, -0.216, -2.02, -0.232, -0.865, 3.323, 0.226, -0.353, -0.281, -0.668,
        -1.055, -0.391, 0.482, -0.239, 0.958,
      ],
      [160, 96, 160],
    ],
    [
      [
        -0.2, 0.024, 1.546, 0.545, -0.505, -0.183, 0.541, 1.935, -0.27, -0.244, 1.002, -0.886, -0.292, 0.883,
        0.58, 0.092, 0.67, -2.828, 1.021,
      ],
      [115, 39, 160],
    ],
  ])('pack bits as sentence-transformers does (%#)', (row, packed) => {
    expect([...vectorOfType(Float32Array.from(row), 'ubinary')]).toEqual(packed);
    expect([...vectorOfType(Float32Array.from(row), 'binary')]).toEqual(packed.map((byte) => byte - 128));
  });

  it('keep the cosine of a row in bytes', () => {
    const rows = fc.array(fc.float({ min: -100, max: 100, noNaN: true }), { minLength: 1, maxLength: 64 });
    fc.assert(
      fc.property(rows, (values) => {
        const row = Float32Array.from(values);
        const bytes = vectorOfType(row, 'int8');
        const greatest = Math.max(...row.map(Math.abs));
        for (const [i, byte] of bytes.entries())
          expect(Math.abs(byte - (greatest === 0 ? 0 : (127 * row[i]!) / greatest))).toBeLessThanOrEqual(0.5);
        expect([...vectorOfType(row, 'uint8')]).toEqual([...bytes].map((byte) => byte + 128));
      }),
    );
  });

  it('leave a row of zeros, and a row in floats as it is', () => {
    const zeros = new Float32Array(9);
    expect([...vectorOfType(zeros, 'int8')]).toEqual([...zeros]);
    expect([...vectorOfType(zeros, 'ubinary')]).toEqual([0, 0]);
    expect(vectorOfType(zeros, 'float')).toBe(zeros);
  });
});
