/** What a file says of which way up its picture is, as EXIF counts: 1 upright, 3 upside down, 6 and 8 on a side, and mirrored. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Bytes before the data of EXIF in a JPEG's segment, and in some WebP files. */
const MARK = [0x45, 0x78, 0x69, 0x66, 0, 0];
const TAG = 0x112;
const ENTRY_BYTES = 12;
const SHORT = 3;
const LONG = 4;

export const isExif = (bytes: Uint8Array): boolean => MARK.every((one, i) => bytes[i] === one);

/** The orientation in data of EXIF; 1 where there is none, or the data are damaged. */
export function exifOrientation(exif: Uint8Array | null): Orientation {
  if (exif === null) return 1;
  const tiff = isExif(exif) ? exif.subarray(MARK.length) : exif;
  if (tiff.length < 14) return 1;
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const isLittle = tiff[0] === 0x49 && tiff[1] === 0x49;
  if (!isLittle && !(tiff[0] === 0x4d && tiff[1] === 0x4d)) return 1;
  const first = view.getUint32(4, isLittle);
  if (first + 2 > tiff.length) return 1;
  const count = view.getUint16(first, isLittle);
  for (let i = 0, at = first + 2; i < count && at + ENTRY_BYTES <= tiff.length; i++, at += ENTRY_BYTES) {
    if (view.getUint16(at, isLittle) !== TAG) continue;
    const type = view.getUint16(at + 2, isLittle);
    if (type !== SHORT && type !== LONG) return 1;
    const value = type === SHORT ? view.getUint16(at + 8, isLittle) : view.getUint32(at + 8, isLittle);
    return value >= 1 && value <= 8 ? (value as Orientation) : 1;
  }
  return 1;
}

/** True where a picture lies on its side. */
export const isOnSide = (orientation: Orientation): boolean => orientation >= 5;
