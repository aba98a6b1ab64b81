import { createRequire } from 'node:module';
import { beforeAll, describe, expect, it } from 'vitest';
import { decodedPicture } from '../../../models/images/decode-picture.js';
import { PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import { loadSharp, type Sharp } from '../../../models/images/sharp-package.js';
import { digest, pictureGoldens } from '../../support/picture-goldens.js';

let sharp: Sharp;
beforeAll(() => {
  sharp = loadSharp(createRequire(import.meta.url));
});

describe('decoding', () => {
  it.each(pictureGoldens().files)(
    'gives the bytes that transformers get of PIL: $name',
    async ({ file, width, height, sha256 }) => {
      const pixels = await decodedPicture(Buffer.from(file, 'base64'), sharp, PICTURE_LIMITS);
      expect([pixels.width, pixels.height]).toEqual([width, height]);
      expect(digest(pixels.bytes)).toBe(sha256);
    },
  );
});
