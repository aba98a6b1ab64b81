import { describe, expect, it } from 'vitest';
import { exifOrientation } from '../../../models/images/files/exif-orientation.js';
import { pictureHeader, uprightSize } from '../../../models/images/files/picture-header.js';
import { PICTURE_LIMITS } from '../../../models/images/picture-limits.js';
import { pictureGoldens } from '../../support/picture-goldens.js';

/** Data of EXIF whose first directory has one entry. */
function exif({ order = 'II', first = 8, tag = 0x112, type = 3, value = 6, count = 1 } = {}): Buffer {
  const isLittle = order === 'II';
  const bytes = Buffer.alloc(26);
  const write = (number: number, at: number, size: 2 | 4) =>
    isLittle ? bytes.writeUIntLE(number, at, size) : bytes.writeUIntBE(number, at, size);
  bytes.write(order, 0, 'latin1');
  write(42, 2, 2);
  write(first, 4, 4);
  write(count, 8, 2);
  write(tag, 10, 2);
  write(type, 12, 2);
  write(1, 14, 4);
  write(value, 18, type === 3 ? 2 : 4);
  return bytes;
}

describe('the orientation of EXIF', () => {
  it.each(pictureGoldens().files)(
    'gives the size of the upright picture before it is decoded: $name',
    (one) => {
      const header = pictureHeader(Buffer.from(one.file, 'base64'), PICTURE_LIMITS);
      expect(uprightSize(header)).toEqual({ width: one.width, height: one.height });
    },
  );

  it('is read in both orders of bytes, in both types, and behind its mark', () => {
    expect(exifOrientation(exif())).toBe(6);
    expect(exifOrientation(exif({ order: 'MM', value: 8 }))).toBe(8);
    expect(exifOrientation(exif({ type: 4, value: 3 }))).toBe(3);
    expect(exifOrientation(Buffer.concat([Buffer.from('Exif\0\0'), exif({ value: 5 })]))).toBe(5);
  });

  it.each([
    ['none', null],
    ['an empty one', Buffer.alloc(0)],
    ['another order of bytes', exif({ order: 'XX' })],
    ['a directory behind the end', exif({ first: 2 ** 31 })],
    ['another entry', exif({ tag: 0x110 })],
    ['another type', exif({ type: 7 })],
    ['a number out of range', exif({ value: 9 })],
    ['entries that are not there', exif({ tag: 1, count: 65_535 })],
  ])('is upright where there is %s', (_, bytes) => {
    expect(exifOrientation(bytes)).toBe(1);
  });
});
