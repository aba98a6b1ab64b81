import { checkSize, type PictureLimits } from '../picture-limits.js';
import type { Size } from '../resize.js';
import { isOnSide, type Orientation } from './exif-orientation.js';
import { gifHeader } from './gif-header.js';
import { jpegHeader } from './jpeg-header.js';
import { type PictureKind, pictureKind } from './picture-kind.js';
import { pngHeader } from './png-header.js';
import { webpHeader } from './webp-header.js';

/** What a file says of its picture, before the picture is decoded and turned upright. */
export interface PictureHeader {
  kind: PictureKind;
  width: number;
  height: number;
  /** Bytes of a pixel as it is decoded: samples, and two bytes for each of 16 bits. */
  decodedBytes: number;
  orientation: Orientation;
}

/** The size of a picture once it has been turned upright. */
export function uprightSize({ width, height, orientation }: PictureHeader): Size {
  return isOnSide(orientation) ? { width: height, height: width } : { width, height };
}

const READERS: Readonly<Record<PictureKind, (bytes: Uint8Array) => Omit<PictureHeader, 'kind'>>> = {
  JPEG: jpegHeader,
  PNG: pngHeader,
  WebP: webpHeader,
  GIF: gifHeader,
};

/** Reads a file's header. @throws PictureError for a kind that is not read, a damaged header, or more pixels than there may be */
export function pictureHeader(bytes: Uint8Array, limits: PictureLimits): PictureHeader {
  const kind = pictureKind(bytes);
  const header = { kind, ...READERS[kind](bytes) };
  checkSize(kind, header.width, header.height, limits);
  return header;
}
