import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import { Random } from '../../../../tools/support/random.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const { checksums } = loadAddon();
const file = join(temporaryFolder('skein-crc'), 'bytes');
const MIB = 1 << 20;
const bytes = new Uint8Array(3 * MIB + 77);
const random = new Random(5);
for (let i = 0; i < bytes.length; i++) bytes[i] = random.below(256);
writeFileSync(file, bytes);

describe('the checksums of ranges', () => {
  it('are those of zlib, for every length around the processor’s vectors and around a piece', () => {
    const lengths = [...Array(150).keys(), MIB - 1, MIB, MIB + 1, 2 * MIB, 3 * MIB + 70];
    for (const offset of [0, 1, 7]) {
      const ranges = lengths.map((byteLength) => ({ offset, byteLength }));
      const expected = ranges.map(({ byteLength }) => crc32(bytes.subarray(offset, offset + byteLength)));
      for (const threads of [1, 3]) expect([...checksums(file, ranges, threads)]).toEqual(expected);
    }
    expect([...checksums(file, [], 1)]).toEqual([]);
  });

  it('are refused where a range, the file or a number of threads is none', () => {
    const range = { offset: 10, byteLength: bytes.length };
    expect(() => checksums(file, [range], 1)).toThrow(
      `${file}: summed bytes 10 to ${bytes.length + 10} lie beyond`,
    );
    expect(() => checksums(`${file}.none`, [], 1)).toThrow('cannot be opened');
    expect(() => checksums(file, [], 0)).toThrow('threads should be from 1 to 1024');
    expect(() => checksums(file, [{ offset: -1, byteLength: 1 }], 1)).toThrow(
      'should be a whole number >= 0',
    );
    expect(() => checksums(file, [1 as never], 1)).toThrow('a range should be an object');
  });
});
