import { damaged, viewOf } from './damaged.js';
import { exifOrientation, isExif, type Orientation } from './exif-orientation.js';

/** Most scans of a progressive picture: encoders make about ten, and each costs a pass over all of the picture. */
const MAX_SCANS = 64;
/** Most places with a byte of 0xff before the first scan: a file has some ten segments there, and their contents are passed over. */
const MAX_STEPS = 4096;

const START_OF_SCAN = 0xda;
/** The segment of EXIF, and of some others. */
const APP1 = 0xe1;
/** Markers from 0xc0 to 0xcf that begin no frame: tables of Huffman and arithmetic codes, and one that is reserved. */
const NO_FRAMES = new Set([0xc4, 0xc8, 0xcc]);

const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && !NO_FRAMES.has(marker);
/** Markers without a length: restarts, the beginning and end of an image, and TEM; 0 and 0xff are none. */
const isBare = (marker: number) => (marker >= 0xd0 && marker <= 0xd9) || marker <= 1 || marker === 0xff;

interface JpegHeader {
  width: number;
  height: number;
  decodedBytes: number;
  orientation: Orientation;
}

/** Size of a JPEG picture, by its first frame header, and its orientation. Takes a bounded number of steps. */
export function jpegHeader(bytes: Uint8Array): JpegHeader {
  const view = viewOf(bytes);
  let frame: Omit<JpegHeader, 'orientation'> | null = null;
  let exif: Uint8Array | null = null;
  let at = bytes.indexOf(0xff, 2);
  for (let step = 0; at >= 0 && at + 4 <= bytes.length; step++) {
    if (step > MAX_STEPS) throw damaged('JPEG', 'no scan is found at its beginning');
    const marker = bytes[at + 1]!;
    if (isBare(marker)) {
      at = bytes.indexOf(0xff, at + 1);
      continue;
    }
    const length = view.getUint16(at + 2);
    if (length < 2 || at + 2 + length > bytes.length) throw damaged('JPEG', 'it breaks off in a segment');
    if (marker === START_OF_SCAN) break;
    const content = bytes.subarray(at + 4, at + 2 + length);
    if (isFrame(marker)) frame ??= frameOf(view, at + 2, length);
    else if (marker === APP1 && isExif(content)) exif ??= content;
    at = bytes.indexOf(0xff, at + 2 + length);
  }
  if (frame === null) throw damaged('JPEG', 'it has no frame');
  return { ...frame, orientation: exifOrientation(exif) };
}

/** Looks through all of a file for its scans. @throws PictureError for more of them than there may be, or a second frame */
export function checkScans(bytes: Uint8Array): void {
  const view = viewOf(bytes);
  let scans = 0;
  let frames = 0;
  for (let at = bytes.indexOf(0xff, 2); at >= 0 && at + 4 <= bytes.length; ) {
    const marker = bytes[at + 1]!;
    if (marker === 0xd9) break;
    if (isBare(marker)) {
      at = bytes.indexOf(0xff, at + (marker === 0xff ? 1 : 2));
      continue;
    }
    if (isFrame(marker) && ++frames > 1) throw damaged('JPEG', 'it has two frames');
    if (marker === START_OF_SCAN && ++scans > MAX_SCANS)
      throw damaged('JPEG', `it has more than ${MAX_SCANS} scans`);
    at = bytes.indexOf(0xff, at + 2 + view.getUint16(at + 2));
  }
}

function frameOf(view: DataView, at: number, length: number) {
  if (length < 8) throw damaged('JPEG', 'its frame header is too short');
  const bits = view.getUint8(at + 2);
  if (bits !== 8) throw damaged('JPEG', `it has samples of ${bits} bits, and 8 are read`);
  const channels = view.getUint8(at + 7);
  if (channels !== 1 && channels !== 3 && channels !== 4)
    throw damaged('JPEG', `it has ${channels} channels, and 1, 3 or 4 are read`);
  return { width: view.getUint16(at + 5), height: view.getUint16(at + 3), decodedBytes: channels };
}
