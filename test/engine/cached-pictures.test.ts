import { describe, expect, it } from 'vitest';
import { cachedPictures } from '../../engine/sequences/cached-pictures.js';
import { pictureIds } from '../../models/images/picture-identity.js';

const table = (bothWays: boolean, ...spans: [start: number, end: number][]) => ({
  firstId: 100,
  values: new Float32Array(0),
  images: spans.map(([start, end]) => ({ start, end, rows: 1, columns: end - start })),
  ...(bothWays && { bothWays: true as const }),
});

describe('pictures in the cache', () => {
  it('are found in part where so many of their ids are equal as have the bits of a hash', () => {
    expect(cachedPictures(table(false, [3, 40], [41, 46]))).toEqual({
      spans: [
        { start: 3, end: 12 },
        { start: 41, end: 46 },
      ],
      forksAt: 46,
    });
    const ids = pictureIds(Buffer.alloc(32), 'tower', 9, 0);
    const bits = ids.length * Math.ceil(Math.log2(Math.max(...ids)));
    expect(bits).toBeGreaterThanOrEqual(256);
  });

  it('are found whole or not at all where their tokens attend to all of them', () => {
    expect(cachedPictures(table(true, [3, 40]))).toEqual({ spans: [{ start: 3, end: 40 }], forksAt: 40 });
  });

  it('are none in a text, nor where ids name rows', () => {
    expect(cachedPictures(null)).toEqual({});
    expect(cachedPictures({ firstId: 100, values: new Float32Array(4), images: null })).toEqual({});
  });
});
