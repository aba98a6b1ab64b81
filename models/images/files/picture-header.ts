import { checkSize, type PictureLimits } from '../picture-limits.js';
import type { Size } from '../resize.js';
import { damaged, viewOf } from './damaged.js';
import { exifOrientation, isOnSide, type Orientation } from './exif-orientation.js';
import { gifHeader } from './gif-header.js';
import { jpegHeader } from './jpeg-header.js';
import { type PictureKind, pictureKind } from './picture-kind.js';
import { pngHeader } from './png-header.js';

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

/** Offset of the first chunk, and of what it holds. */
const FIRST = 12;
const CONTENT = FIRST + 8;
/** Most chunks that are passed over: a file has some five, and one for each frame. */
const MAX_CHUNKS = 4096;

/** Size of a WebP picture, by its first chunk: of all frames where it has several; and its orientation. */
function webpHeader(bytes: Uint8Array) {
  if (bytes.length < CONTENT + 10) throw damaged('WebP', 'it breaks off in its header');
  const view = viewOf(bytes);
  if (8 + view.getUint32(4, true) > bytes.length) throw damaged('WebP', 'it breaks off');
  return { ...sizeOf(view), decodedBytes: 4, orientation: exifOrientation(exifOf(bytes, view)) };
}

const typeAt = (view: DataView, at: number) =>
  String.fromCharCode(...[0, 1, 2, 3].map((i) => view.getUint8(at + i)));

/** What the chunk of EXIF holds; null: there is none. */
function exifOf(bytes: Uint8Array, view: DataView): Uint8Array | null {
  for (let at = FIRST, i = 0; at + 8 <= bytes.length && i < MAX_CHUNKS; i++) {
    const length = view.getUint32(at + 4, true);
    if (typeAt(view, at) === 'EXIF') return bytes.subarray(at + 8, at + 8 + length);
    at += 8 + length + (length % 2);
  }
  return null;
}

function sizeOf(view: DataView): { width: number; height: number } {
  const type = typeAt(view, FIRST);
  if (type === 'VP8X')
    return { width: 1 + threeBytes(view, CONTENT + 4), height: 1 + threeBytes(view, CONTENT + 7) };
  if (type === 'VP8L' && view.getUint8(CONTENT) === 0x2f) {
    const bits = view.getUint32(CONTENT + 1, true);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (type === 'VP8 ' && threeBytes(view, CONTENT + 3) === 0x2a019d) {
    const side = (at: number) => view.getUint16(at, true) & 0x3fff;
    return { width: side(CONTENT + 6), height: side(CONTENT + 8) };
  }
  throw damaged('WebP', 'it does not begin with a picture');
}

const threeBytes = (view: DataView, at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
