import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resized } from '../../../models/images/resize.js';
import { resizeWeights } from '../../../models/images/resize-weights.js';
import { digest, drawnPicture, pictureGoldens } from '../../support/picture-goldens.js';

describe('resizing', () => {
  it.each(pictureGoldens().resizes)(
    'gives the bytes of PIL and of torchvision: $filter from $from to $to',
    ({ filter, from, to, pil, torch }) => {
      const pixels = drawnPicture(...from);
      expect(digest(resized(pixels, ...to, filter, 'pil').bytes)).toBe(pil);
      expect(digest(resized(pixels, ...to, filter, 'torch').bytes)).toBe(torch);
    },
  );

  it('keeps a plain picture plain, and has weights of all pixels whose sum is one', () => {
    const side = fc.integer({ min: 1, max: 90 });
    const filters = fc.constantFrom('bilinear', 'bicubic', 'lanczos');
    const draw = fc.tuple(side, side, filters, fc.constantFrom('pil', 'torch'), fc.nat(255));
    fc.assert(
      fc.property(draw, ([from, to, filter, arithmetic, grey]) => {
        const { starts, counts, weights, stride, bits } = resizeWeights(from, to, filter, arithmetic);
        const seen = new Set<number>();
        for (let i = 0; i < to; i++) {
          const own = weights.subarray(i * stride, i * stride + counts[i]!);
          for (let j = 0; j < own.length; j++) seen.add(starts[i]! + j);
          const sum = own.reduce((a, b) => a + b, 0);
          expect(Math.abs(sum - 2 ** bits)).toBeLessThanOrEqual(own.length);
        }
        expect(seen.size).toBe(from);
        const plain = { width: from, height: 2, bytes: new Uint8Array(from * 6).fill(grey) };
        const { width, height, bytes } = resized(plain, to, 3, filter, arithmetic);
        expect([width, height, bytes.length]).toEqual([to, 3, to * 9]);
        expect(bytes.every((one) => Math.abs(one - grey) <= 1)).toBe(true);
      }),
    );
  });

  it('leaves a picture of the same size as it is', () => {
    const pixels = drawnPicture(7, 5);
    expect(resized(pixels, 7, 5, 'lanczos', 'torch')).toBe(pixels);
  });
});
