import { decodedPicture } from './decode-picture.js';
import { type PictureHeader, uprightSize } from './files/picture-header.js';
import { pictureDigest } from './picture-identity.js';
import type { PictureLimits } from './picture-limits.js';
import type { PictureFiles, PicturePreprocessor } from './preprocess/picture-preprocessor.js';
import { CHANNELS, type Pixels } from './resize.js';
import type { Sharp } from './sharp-package.js';

/** A picture's file, and how it is prepared. */
export interface PictureJob {
  bytes: Uint8Array;
  files: PictureFiles;
  limits: PictureLimits;
}

/** A picture as a model's tower takes it. */
export interface PreparedPicture {
  /** Its size, upright. */
  width: number;
  height: number;
  /** See pictureDigest. */
  digest: Uint8Array;
  /** See PicturePreprocessor.patches. */
  tiles: Pixels[];
}

/** Decodes a picture's file and prepares it. @throws PictureError */
export async function preparedPicture(
  { bytes, limits }: PictureJob,
  preprocessor: PicturePreprocessor,
  sharp: Sharp,
): Promise<PreparedPicture> {
  const pixels = await decodedPicture(bytes, sharp, limits);
  const { width, height } = pixels;
  const digest = pictureDigest(pixels, preprocessor.settings);
  return { width, height, digest, tiles: preprocessor.tiles(pixels) };
}

/** Bytes that it takes at a time to prepare a picture, known before it is decoded. @throws PictureError for a size that the model cannot have */
export function preparationBytes(
  { byteLength }: Uint8Array,
  header: PictureHeader,
  preprocessor: PicturePreprocessor,
): number {
  const { width, height } = uprightSize(header);
  const resized = preprocessor.plan(width, height).bytes;
  // The file is there twice, since it goes to another process; samples become red, green and blue, and are turned.
  return 2 * byteLength + width * height * (header.decodedBytes + 2 * CHANNELS) + resized;
}
