import { describe, expect, it } from 'vitest';
import { pictureDigest, pictureIds } from '../../../models/images/picture-identity.js';

const pixels = { width: 2, height: 1, bytes: new Uint8Array([0, 1, 2, 3, 4, 5]) };
const settings = { kind: 'x', a: [1, { c: 3, b: 2 }] };

describe('what a picture is known by', () => {
  it('is the digest of its size, pixels and settings, in whatever order these stand', () => {
    const digest = pictureDigest(pixels, settings);
    // By Python's hashlib.
    expect(digest.toString('hex')).toBe('eea9d73f034534b05a8db6227d1a99efb962d86dbb21a60c1736780fd081d36f');
    expect(pictureDigest(pixels, { a: [1, { b: 2, c: 3 }], kind: 'x' })).toEqual(digest);
    const others = [
      pictureDigest({ ...pixels, width: 1, height: 2 }, settings),
      pictureDigest({ ...pixels, bytes: pixels.bytes.toReversed() }, settings),
      pictureDigest(pixels, { ...settings, kind: 'y' }),
    ].map((one) => one.toString('hex'));
    expect(new Set([digest.toString('hex'), ...others]).size).toBe(4);
  });

  it('gives ids beyond the vocabulary, of 30 bits, which a longer picture begins with too', () => {
    const digest = pictureDigest(pixels, settings);
    const ids = pictureIds(digest, 'tower', 10, 1000);
    expect([...ids]).toEqual([
      128322702, 912493860, 611726147, 308514451, 258208072, 957566060, 508157108, 816615591, 637414318,
      252779621,
    ]);
    const many = pictureIds(digest, 'tower', 4099, 2 ** 24);
    expect([...many.subarray(0, 10)].map((id) => id - 2 ** 24 + 1000)).toEqual([...ids]);
    expect(many.every((id) => id >= 2 ** 24 && id < 2 ** 24 + 2 ** 30)).toBe(true);
    expect(new Set(many).size).toBeGreaterThan(4090);
    expect(Math.max(...many)).toBeGreaterThan(2 ** 24 + 2 ** 29);
    expect([...pictureIds(digest, 'another', 10, 1000)]).not.toEqual([...ids]);
  });
});
