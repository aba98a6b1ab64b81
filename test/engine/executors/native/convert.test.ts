import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConvertJob } from '../../../../engine/directory/convert-job.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import type { TensorType } from '../../../../models/checkpoints/checkpoint.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const { convert } = loadAddon();
const directory = temporaryFolder('skein-convert');

interface Fixture {
  type: TensorType;
  rows: number;
  columns: number;
  raw: string;
  f32: string;
  bf16: string;
}
const fixtures = JSON.parse(readFileSync(join(root, 'test/fixtures/ggml-types.json'), 'utf8')) as Fixture[];

function file(name: string, bytes: Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

function job(source: string, change: Partial<ConvertJob> = {}): ConvertJob {
  const { size } = statSync(source);
  return {
    source,
    sourceOffset: 0,
    sourceByteLength: size,
    type: 'F32',
    rows: 1,
    columns: size / 4,
    interleavedHeads: 0,
    targetOffset: 0,
    targetType: 'f32',
    ...change,
  };
}

describe('convert', () => {
  for (const fixture of fixtures) {
    const { type, rows, columns } = fixture;
    for (const targetType of ['f32', 'bf16'] as const) {
      it(`reads ${type} into ${targetType} as gguf-py does, bit for bit`, () => {
        const expected = Buffer.from(fixture[targetType], 'base64');
        const raw = Buffer.from(fixture.raw, 'base64');
        const source = file(
          'source.bin',
          Buffer.concat([Buffer.alloc(13, 0xff), raw, Buffer.alloc(7, 0xff)]),
        );
        const target = file('target.bin', Buffer.alloc(64 + expected.length + 5, 0xaa));
        const one = job(source, { sourceOffset: 13, sourceByteLength: raw.length, type, rows, columns });
        convert(target, [{ ...one, targetOffset: 64, targetType }], 2);
        const written = readFileSync(target);
        expect(written.subarray(64, 64 + expected.length).equals(expected)).toBe(true);
        expect(written.subarray(0, 64).every((byte) => byte === 0xaa)).toBe(true);
        expect(written.subarray(64 + expected.length).every((byte) => byte === 0xaa)).toBe(true);
      });
    }
  }

  it('rounds to bf16 to nearest, ties to even, and keeps NaN a NaN', () => {
    const bits = [0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0x7f800001, 0xffffffff, 0x80000000];
    const source = file('bits.bin', Buffer.from(Uint32Array.from(bits).buffer));
    const target = file('rounded.bin', Buffer.alloc(2 * bits.length));
    convert(target, [job(source, { targetType: 'bf16' })], 1);
    const bytes = readFileSync(target);
    const rounded = bits.map((_, i) => bytes.readUInt16LE(2 * i));
    expect(rounded).toEqual([0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x7fc0, 0xffff, 0x8000]);
  });

  it('puts rows back that llama.cpp interleaved within each head', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 3 }),
        (heads, half, columns, threads) => {
          const rows = heads * 2 * half;
          const original = Float32Array.from({ length: rows * columns }, (_, i) => i);
          const permuted = new Float32Array(original.length);
          for (let head = 0; head < heads; head++) {
            for (let j = 0; j < 2; j++) {
              for (let i = 0; i < half; i++) {
                const from = (head * 2 * half + j * half + i) * columns;
                const to = (head * 2 * half + 2 * i + j) * columns;
                permuted.set(original.subarray(from, from + columns), to);
              }
            }
          }
          const source = file('permuted.bin', new Uint8Array(permuted.buffer));
          const target = file('restored.bin', Buffer.alloc(4 * original.length));
          convert(target, [job(source, { rows, columns, interleavedHeads: heads })], threads);
          expect(readFileSync(target).equals(Buffer.from(original.buffer))).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('turns what lies transposed, in pieces too, and adds what is to be added', () => {
    for (const [rows, columns] of [
      [5, 3],
      [1, 7],
      [700, 1030],
    ] as const) {
      const original = Float32Array.from({ length: rows * columns }, (_, i) => i % 1000);
      const turned = original.map((_, i) => original[(i % rows) * columns + Math.floor(i / rows)]!);
      const source = file('turned.bin', new Uint8Array(turned.buffer));
      for (const addend of [0, 1]) {
        const target = file('straight.bin', Buffer.alloc(4 * original.length));
        convert(target, [job(source, { rows, columns, transposed: true, addend })], 3);
        const expected = Buffer.from(original.map((value) => value + addend).buffer);
        expect(readFileSync(target).equals(expected)).toBe(true);
      }
    }
  });

  // As gate and up of gpt-oss; of more than one piece, each of which begins in either half.
  it('takes apart columns that take turns, which are rows then, in pieces too', () => {
    const [rows, columns] = [1200, 600];
    const original = Float32Array.from({ length: rows * columns }, (_, i) => i % 1000);
    const stored = original.map((_, i) => {
      const output = i % rows;
      const row = output % 2 === 0 ? output / 2 : rows / 2 + (output - 1) / 2;
      return original[row * columns + Math.floor(i / rows)]!;
    });
    const source = file('turns.bin', new Uint8Array(stored.buffer));
    const target = file('apart.bin', Buffer.alloc(4 * original.length));
    convert(target, [job(source, { rows, columns, transposed: true, interleavedHeads: 1 })], 3);
    expect(readFileSync(target).equals(Buffer.from(original.buffer))).toBe(true);
  });

  it('multiplies what it has added to, in f32, before it rounds', () => {
    const source = file('factors.bin', Buffer.from(Float32Array.of(0.1, -5, 3).buffer));
    const target = file('factors-target.bin', Buffer.alloc(12));
    const shape = { rows: 1, columns: 3, addend: 1, factor: 0.3 };
    convert(target, [job(source, shape)], 1);
    const expected = Float32Array.of(0.1, -5, 3).map((value) => Math.fround(value + 1) * Math.fround(0.3));
    expect(readFileSync(target).equals(Buffer.from(expected.buffer))).toBe(true);
    const rounded = file('factors-rounded.bin', Buffer.alloc(6));
    convert(rounded, [job(source, { ...shape, targetType: 'bf16' })], 1);
    expect(readFileSync(rounded).readUInt16LE(4)).toBe(0x3f9a);
  });

  it('adds before it rounds', () => {
    const source = file('near.bin', Buffer.from(Float32Array.of(0.00390625, -0.5).buffer));
    const target = file('near-target.bin', Buffer.alloc(4));
    convert(target, [job(source, { addend: 1, targetType: 'bf16' })], 1);
    expect([readFileSync(target).readUInt16LE(0), readFileSync(target).readUInt16LE(2)]).toEqual([
      0x3f80, 0x3f00,
    ]);
  });

  it('gives the same bytes on any number of threads, for tensors of many pieces', () => {
    const values = Float32Array.from({ length: 700 * 1030 }, (_, i) => Math.sin(i));
    const source = file('large.bin', new Uint8Array(values.buffer));
    const jobs = [0, 1, 2].map((i) =>
      job(source, { rows: 700, columns: 1030, targetOffset: i * values.byteLength }),
    );
    for (const threads of [1, 3, 16]) {
      const target = file('large-target.bin', Buffer.alloc(3 * values.byteLength));
      convert(target, jobs, threads);
      const expected = Buffer.from(values.buffer);
      expect(readFileSync(target).equals(Buffer.concat([expected, expected, expected]))).toBe(true);
    }
  });

  describe('refuses', () => {
    const source = file('refused.bin', Buffer.alloc(64));
    const target = file('refused-target.bin', Buffer.alloc(64));
    const cases: [string, Partial<ConvertJob>, RegExp][] = [
      [
        'a tensor beyond the source',
        { sourceOffset: 8 },
        /refused\.bin: tensor bytes 8 to 72 lie beyond.*64/,
      ],
      ['an offset far beyond', { sourceOffset: 2 ** 53 - 1 }, /lie beyond/],
      [
        'a target beyond the file',
        { targetOffset: 4 },
        /refused-target\.bin: converted tensor bytes 4 to 68/,
      ],
      ['a length that is not the shape’s', { columns: 15 }, /shape \[1, 15\] takes 60 bytes, found 64/],
      ['broken blocks', { type: 'Q8_0', columns: 16 }, /whole blocks of Q8_0/],
      ['rows that overflow', { rows: 2 ** 40, columns: 2 ** 24 }, /out of range/],
      ['columns that overflow', { columns: 2 ** 40 }, /out of range/],
      ['no rows', { rows: 0 }, /out of range/],
      [
        'blocks that lie transposed',
        { type: 'Q8_0', rows: 1, columns: 32, transposed: true },
        /transposed|takes/,
      ],
      ['heads that do not divide', { rows: 4, columns: 4, interleavedHeads: 3 }, /3 heads/],
      ['more heads than rows', { interleavedHeads: 2 ** 52 }, /heads/],
      ['a negative offset', { sourceOffset: -1 }, /sourceOffset should be a whole number/],
      ['a broken number', { rows: 1.5 }, /rows should be a whole number/],
      ['NaN', { targetOffset: Number.NaN }, /targetOffset should be/],
      ['an unknown type', { type: 'Q9_X' as TensorType }, /tensor type Q9_X is not known/],
      [
        'an unknown target type',
        { targetType: 'f64' as 'f32' },
        /f32, bf16, int8, int4, q4_k, q5_k, q6_k, q5_0, q5_1, iq4_nl, iq4_xs or mxfp4/,
      ],
      ['a missing file', { source: join(directory, 'nowhere.bin') }, /nowhere\.bin: cannot be opened/],
      ['a directory', { source: directory }, /not a regular file/],
    ];
    for (const [what, change, message] of cases) {
      it(what, () => {
        expect(() => convert(target, [job(source, change)], 2)).toThrow(message);
      });
    }

    it('a file truncated since its header was read, and a target shorter than promised', () => {
      const shrinking = file('shrinking.bin', Buffer.alloc(4096));
      const planned = job(shrinking);
      truncateSync(shrinking, 100);
      const full = file('full.bin', Buffer.alloc(4096));
      expect(() => convert(full, [planned], 1)).toThrow(/shrinking\.bin.*beyond the file's 100 bytes/);
      truncateSync(full, 4095);
      expect(() => convert(full, [job(file('whole.bin', Buffer.alloc(4096)))], 1)).toThrow(/full\.bin/);
      expect(() => convert('/dev/full', [job(source)], 1)).toThrow(/regular file/);
    });

    it('arguments of the wrong kind', () => {
      const loose = convert as unknown as (...values: unknown[]) => void;
      for (const values of [
        [],
        [1, [], 1],
        [target, {}, 1],
        [target, [7], 1],
        [target, [], 0],
        [target, [], 1e9],
      ]) {
        expect(() => loose(...values)).toThrow(/convert/);
      }
    });
  });
});
