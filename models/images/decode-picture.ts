import { messageOf } from '../../base/error-text.js';
import type { Orientation } from './files/exif-orientation.js';
import { gifPicture } from './files/gif-picture.js';
import { checkScans } from './files/jpeg-header.js';
import { type PictureHeader, pictureHeader } from './files/picture-header.js';
import type { PictureKind } from './files/picture-kind.js';
import { plainPng } from './files/png-header.js';
import { PictureError } from './picture-error.js';
import type { PictureLimits } from './picture-limits.js';
import { CHANNELS, type Pixels } from './resize.js';
import type { Sharp, SharpPicture } from './sharp-package.js';

/**
 * Decodes the first frame of a picture's file, turned upright by its EXIF orientation, in red, green and blue: the bytes that
 * transformers' image processors make of what PIL opens. Transparency is laid on white, colour profiles are not applied, and greys of 16
 * bits are cut at 255, as there.
 * @throws PictureError for a file that is damaged, or larger than it may be
 */
export async function decodedPicture(
  bytes: Uint8Array,
  sharp: Sharp,
  limits: PictureLimits,
): Promise<Pixels> {
  const header = pictureHeader(bytes, limits);
  if (header.kind === 'GIF') return gifPicture(bytes);
  if (header.kind === 'JPEG') checkScans(bytes);
  const { bytes: plain, hole } = header.kind === 'PNG' ? plainPng(bytes) : { bytes, hole: null };
  const seconds = Math.max(1, Math.ceil(limits.timeLimitMs / 1000));
  const open = () =>
    sharp(plain, {
      failOn: 'error',
      ignoreIcc: true,
      // What the decoder finds may not be more than what the header said.
      limitInputPixels: header.width * header.height,
      sequentialRead: true,
    }).timeout({ seconds });
  let pixels: Pixels;
  try {
    pixels = await decodedBy(open, header);
  } catch (error) {
    if (error instanceof PictureError) throw error;
    throw undecoded(header.kind, error, seconds);
  }
  if (hole !== null) withoutColour(pixels.bytes, hole);
  return pixels;
}

/** The error of a file that the library gives up. Its own text, which names its functions, is the cause. */
function undecoded(kind: PictureKind, cause: unknown, seconds: number): PictureError {
  const isLate = /^timeout\b/.test(messageOf(cause));
  const why = isLate ? `it takes more than ${seconds} s` : 'its data are damaged, or end too soon';
  return new PictureError(`The ${kind} picture cannot be decoded: ${why}.`, { cause });
}

async function decodedBy(open: () => SharpPicture, header: PictureHeader): Promise<Pixels> {
  const { space, channels, width, height } = await open().metadata();
  if (width !== header.width || height !== header.height)
    throw new PictureError(
      `The ${header.kind} picture has ${width} x ${height} pixels, and its header says ${header.width} x ${header.height}.`,
    );
  const upright = turned(open(), header.orientation);
  if (space === 'cmyk')
    return flattened(upright.pipelineColourspace('cmyk').toColourspace('cmyk').raw(), ofInks);
  if (space === 'grey16' && channels === 1)
    return flattened(upright.toColourspace('grey16').raw({ depth: 'ushort' }), ofWideGreys);
  return flattened(upright.raw(), (bytes) => bytes);
}

/** A picture turned upright. A mirror comes before a turn. */
function turned(picture: SharpPicture, orientation: Orientation): SharpPicture {
  switch (orientation) {
    case 1:
      return picture;
    case 2:
      return picture.flop();
    case 3:
      return picture.rotate(180);
    case 4:
      return picture.flip();
    case 5:
      return picture.flip().rotate(90);
    case 6:
      return picture.rotate(90);
    case 7:
      return picture.flop().rotate(90);
    case 8:
      return picture.rotate(270);
  }
}

/** @param inColour makes red, green and blue of what is decoded, where that has no alpha */
async function flattened(
  picture: SharpPicture,
  inColour: (bytes: Uint8Array) => Uint8Array,
): Promise<Pixels> {
  const { data, info } = await picture.toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const isAlpha = info.channels === 4 && inColour !== ofInks;
  const bytes = isAlpha ? onWhite(data) : inColour(data);
  if (bytes.length !== width * height * CHANNELS)
    throw new PictureError(`The picture has ${info.channels} channels, and 1, 3 or 4 are read.`);
  return { width, height, bytes };
}

const WHITE = 255;

/** a x b / 255, rounded as PIL does it. */
function times(a: number, b: number): number {
  const product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/** Red, green and blue of pixels with alpha on white, as PIL's `alpha_composite` on an opaque white picture. */
function onWhite(pixels: Uint8Array): Uint8Array {
  const count = pixels.length / 4;
  const result = new Uint8Array(count * CHANNELS);
  for (let i = 0; i < count; i++) {
    const alpha = pixels[4 * i + 3]!;
    for (let c = 0; c < CHANNELS; c++) {
      // 7 bits more than a byte times a byte, rounded, and divided by 255.
      const sum = (pixels[4 * i + c]! * alpha + WHITE * (255 - alpha)) * 128 + (128 << 7);
      result[CHANNELS * i + c] = (((sum >> 8) + sum) >> 8) >> 7;
    }
  }
  return result;
}

/** Red, green and blue of cyan, magenta, yellow and black, as PIL's `convert`: without any colour profile. */
function ofInks(pixels: Uint8Array): Uint8Array {
  const count = pixels.length / 4;
  const result = new Uint8Array(count * CHANNELS);
  for (let i = 0; i < count; i++) {
    const light = 255 - pixels[4 * i + 3]!;
    for (let c = 0; c < CHANNELS; c++) result[CHANNELS * i + c] = light - times(pixels[4 * i + c]!, light);
  }
  return result;
}

/** Red, green and blue of greys of 16 bits (of this machine's order), as PIL's `convert`, which cuts them at 255 instead of taking their upper halves. */
function ofWideGreys(bytes: Uint8Array): Uint8Array {
  const greys = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  const result = new Uint8ClampedArray(greys.length * CHANNELS);
  greys.forEach((grey, i) => {
    result.fill(grey, CHANNELS * i, CHANNELS * (i + 1));
  });
  return new Uint8Array(result.buffer);
}

/** Makes pixels of one colour white, in place. */
function withoutColour(pixels: Uint8Array, [red, green, blue]: readonly [number, number, number]): void {
  for (let i = 0; i < pixels.length; i += CHANNELS)
    if (pixels[i] === red && pixels[i + 1] === green && pixels[i + 2] === blue)
      pixels.fill(WHITE, i, i + CHANNELS);
}
