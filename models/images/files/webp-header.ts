import { damaged, viewOf } from './damaged.js';
import { exifOrientation } from './exif-orientation.js';

/** Offset of the first chunk, and of what it holds. */
const FIRST = 12;
const CONTENT = FIRST + 8;
/** Most chunks that are passed over: a file has some five, and one for each frame. */
const MAX_CHUNKS = 4096;

/** Size of a WebP picture, by its first chunk: of all frames where it has several; and its orientation. */
export function webpHeader(bytes: Uint8Array) {
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
