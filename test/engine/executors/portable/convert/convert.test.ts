import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConvertJob } from '../../../../../engine/directory/convert-job.js';
import type { TensorPrecision, WeightPrecision } from '../../../../../engine/directory/engine-directory.js';
import { storedBytes } from '../../../../../engine/directory/weight-blocks.js';
import { loadAddon } from '../../../../../engine/executors/native/load-addon.js';
import { convert, convertInPieces } from '../../../../../engine/executors/portable/convert/convert.js';
import { MXFP4_EXPONENT } from '../../../../../engine/executors/portable/convert/power-scales.js';
import { STORAGE_TYPES } from '../../../../../engine/executors/portable/convert/tensor-types.js';
import type { TensorType } from '../../../../../models/checkpoints/checkpoint.js';
import { Random } from '../../../../../tools/support/random.js';
import { temporaryFolder } from '../../../../support/fresh-folders.js';

const native = loadAddon().convert;
const directory = temporaryFolder('skein-portable-convert');

const TARGETS: readonly WeightPrecision[] = ['f32', 'bf16', 'int8', 'int4'];
const source = join(directory, 'source.bin');
const PAD = 5;
const MXFP4_BYTES = 17;

type Shape = Omit<ConvertJob, 'source' | 'sourceOffset' | 'sourceByteLength' | 'targetOffset'>;

/** Bytes after conversion; in both files other bytes lie before and after them, which must stay untouched. */
function converted(by: typeof native, bytes: Uint8Array, shape: Shape): Buffer {
  writeFileSync(source, Buffer.concat([Buffer.alloc(PAD, 0xff), bytes, Buffer.alloc(3, 0xff)]));
  const target = join(directory, 'target.bin');
  const size = storedBytes(shape.targetType, shape.rows, shape.columns);
  writeFileSync(target, Buffer.alloc(64 + size + PAD, 0xaa));
  const place = { source, sourceOffset: PAD, sourceByteLength: bytes.length, targetOffset: 64 };
  by(target, [{ ...place, ...shape }], 2);
  return readFileSync(target);
}

/** Makes all NaN the same: the compiler decides which NaN a multiplication gives. */
function withOneNaN(bytes: Buffer, { targetType, rows, columns }: Shape): Buffer {
  const one = Buffer.from(bytes);
  for (let i = 0; i < rows * columns; i++) {
    if (targetType === 'f32' && (one.readUInt32LE(64 + 4 * i) & 0x7fffffff) > 0x7f800000)
      one.writeUInt32LE(0x7fc00000, 64 + 4 * i);
    if (targetType === 'bf16' && (one.readUInt16LE(64 + 2 * i) & 0x7fff) > 0x7f80)
      one.writeUInt16LE(0x7fc0, 64 + 2 * i);
  }
  return one;
}

function expectSame(bytes: Uint8Array, shape: Shape): void {
  const computes = shape.addend !== undefined || !['F32', 'F16', 'BF16'].includes(shape.type);
  const [ours, theirs] = [convert, native].map((by) => {
    const result = converted(by, bytes, shape);
    return computes ? withOneNaN(result, shape) : result;
  });
  const at = ours!.findIndex((byte, i) => byte !== theirs![i]);
  expect(at, `first byte that differs of ${JSON.stringify(shape)}`).toBe(-1);
}

/**
 * Bytes of `blocks` blocks, some of them special: zeros, all bits set, halves and floats that are infinite or
 * tiny.
 */
function bytesOf(random: Random, blockBytes: number, blocks: number): Uint8Array {
  const bytes = Uint8Array.from({ length: blocks * blockBytes }, () => random.below(256));
  const specials = [0x00, 0x80, 0x7c, 0xfc, 0x7f, 0xff, 0x01, 0x04, 0x3f, 0x38];
  for (let block = 0; block < blocks; block++) {
    const part = bytes.subarray(block * blockBytes, (block + 1) * blockBytes);
    const kind = random.below(8);
    if (kind === 0) part.fill([0, 0xff][random.below(2)]!);
    // The scale may lie at either end, its exponent in its second byte.
    const special = specials[random.below(specials.length)]!;
    if (kind === 1) part[1] = special;
    if (kind === 2) part[part.length - 1] = special;
    if (kind === 3 && part.length > 3) part[3] = special;
    // A block of MXFP4 begins with its exponent, of which the greatest are refused.
    if (blockBytes === MXFP4_BYTES) part[0]! %= MXFP4_EXPONENT + 1;
  }
  return bytes;
}

describe('convert in TypeScript makes the bytes that the addon makes', () => {
  for (const { name, blockElements, blockBytes } of STORAGE_TYPES) {
    it.each(TARGETS)(`of ${name} for %s, whatever bits there are`, (targetType) => {
      const random = new Random(blockBytes + 1000 * TARGETS.indexOf(targetType));
      for (const [rows, blocksPerRow] of [
        [1, 1],
        [3, blockElements === 1 ? 45 : 2],
        [40, blockElements === 1 ? 96 : 3],
      ] as const) {
        const columns = blocksPerRow * blockElements;
        const shape = { type: name as TensorType, rows, columns, interleavedHeads: 0, targetType };
        expectSame(bytesOf(random, blockBytes, rows * blocksPerRow), shape);
      }
    });
  }

  it.each<[TensorType, TensorPrecision]>([
    ['Q4_K', 'q4_k'],
    ['Q5_K', 'q5_k'],
    ['Q6_K', 'q6_k'],
    ['Q3_K', 'q6_k'],
    ['Q5_0', 'q5_0'],
    ['Q5_1', 'q5_1'],
    ['IQ4_NL', 'iq4_nl'],
    ['IQ4_XS', 'iq4_xs'],
    ['MXFP4', 'mxfp4'],
  ])('of %s for %s, whatever bits there are', (type, targetType) => {
    const { blockBytes, blockElements } = STORAGE_TYPES.find(({ name }) => name === type)!;
    const bytes = bytesOf(new Random(blockBytes), blockBytes, 24 * 3);
    for (const interleavedHeads of [0, 3])
      expectSame(bytes, { type, rows: 24, columns: 3 * blockElements, interleavedHeads, targetType });
  });

  it.each(TARGETS)('of numbers such as weights are, for %s, in rows of any length', (targetType) => {
    const size = fc.integer({ min: 1, max: 70 });
    const scale = fc.constantFrom(0, 1e-30, 3e-7, 2e-6, 1e-3, 0.05, 1, 3e4, 3e38);
    fc.assert(
      fc.property(size, size, scale, fc.integer(), (rows, columns, by, seed) => {
        const random = new Random(seed);
        const values = Float32Array.from({ length: rows * columns }, () => random.normal() * by);
        const bytes = new Uint8Array(values.buffer);
        expectSame(bytes, { type: 'F32', rows, columns, interleavedHeads: 0, targetType });
      }),
      { numRuns: 40 },
    );
  });

  it.each(TARGETS)('of what lies transposed, interleaved, or wants something added, for %s', (targetType) => {
    const random = new Random(11);
    for (const type of ['F32', 'F16', 'BF16'] as const) {
      const bytes = bytesOf(random, type === 'F32' ? 4 : 2, 24 * 35);
      const shape = { type, rows: 24, columns: 35, interleavedHeads: 0, targetType };
      expectSame(bytes, { ...shape, transposed: true });
      expectSame(bytes, { ...shape, transposed: true, addend: 1 });
      expectSame(bytes, { ...shape, addend: 0.1 });
      expectSame(bytes, { ...shape, factor: 0.3, addend: 1 });
      for (const interleavedHeads of [1, 3, 12])
        for (const transposed of [false, true]) expectSame(bytes, { ...shape, interleavedHeads, transposed });
    }
    const blocks = bytesOf(random, 18, 24 * 2);
    expectSame(blocks, { type: 'Q4_0', rows: 24, columns: 64, interleavedHeads: 4, targetType });
  });

  it('of tensors of many pieces, several in one file', () => {
    const values = Float32Array.from({ length: 700 * 1030 }, (_, i) => Math.sin(i));
    const bytes = new Uint8Array(values.buffer);
    for (const transposed of [false, true]) {
      const shape = { type: 'F32', rows: 700, columns: 1030, interleavedHeads: 0, transposed } as const;
      expectSame(bytes, { ...shape, targetType: 'int8' });
      expectSame(bytes, { ...shape, targetType: 'int8', interleavedHeads: 1 });
    }
    const target = join(directory, 'several.bin');
    writeFileSync(target, Buffer.alloc(2 * values.byteLength));
    const jobs = [0, 1].map((i) => wholeSource({ rows: 700, columns: 1030, targetOffset: i * bytes.length }));
    writeFileSync(source, bytes);
    const pieces = [
      ...convertInPieces(
        target,
        jobs.map((job) => ({ ...job, sourceByteLength: bytes.length })),
        1,
      ),
    ];
    expect(pieces.length).toBeGreaterThan(2);
    expect(readFileSync(target).equals(Buffer.concat([bytes, bytes]))).toBe(true);
  });
});

/** The file of 64 bytes that the refusals are about. */
function wholeSource(change: Partial<ConvertJob>): ConvertJob {
  return {
    source,
    sourceOffset: 0,
    sourceByteLength: 64,
    type: 'F32',
    rows: 1,
    columns: 16,
    interleavedHeads: 0,
    targetOffset: 0,
    targetType: 'f32',
    ...change,
  };
}

describe('convert in TypeScript refuses in the words of the addon', () => {
  const target = join(directory, 'refused.bin');
  const messageOf = (work: () => void) => {
    try {
      work();
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const expectRefusal = (...given: Parameters<typeof convert>) => {
    const theirs = messageOf(() => native(given[0], given[1] as ConvertJob[], given[2]));
    expect(theirs).not.toBeNull();
    expect(messageOf(() => convert(...given))).toBe(theirs);
  };
  const fresh = () => {
    writeFileSync(source, Buffer.alloc(64));
    writeFileSync(target, Buffer.alloc(64));
  };

  it.each<[string, Partial<ConvertJob>]>([
    ['a tensor beyond the source', { sourceOffset: 8 }],
    ['an offset far beyond', { sourceOffset: 2 ** 53 - 1 }],
    ['a target beyond the file', { targetOffset: 4 }],
    ['a length that is not the shape’s', { columns: 15 }],
    ['broken blocks', { type: 'Q8_0', columns: 16 }],
    ['rows that overflow', { rows: 2 ** 40, columns: 2 ** 24 }],
    ['as many rows as may be', { rows: 2 ** 32, columns: 2 ** 24 }],
    ['columns that overflow', { columns: 2 ** 40 }],
    ['no rows', { rows: 0 }],
    [
      'blocks that lie transposed',
      { type: 'Q4_0', rows: 1, columns: 32, sourceByteLength: 18, transposed: true },
    ],
    ['heads that do not divide', { rows: 4, columns: 4, interleavedHeads: 3 }],
    ['more heads than rows', { interleavedHeads: 2 ** 52 }],
    ['a negative offset', { sourceOffset: -1 }],
    ['a broken number', { rows: 1.5 }],
    ['NaN', { targetOffset: Number.NaN }],
    ['a number that is a text', { columns: '16' as unknown as number }],
    ['a source that is none', { source: 5 as unknown as string }],
    ['an unknown type', { type: 'Q9_X' as TensorType }],
    ['an unknown target type', { targetType: 'f64' as 'f32' }],
    ['a missing file', { source: join(directory, 'nowhere.bin') }],
    ['a directory', { source: directory }],
  ])('%s', (_what, change) => {
    fresh();
    expectRefusal(target, [wholeSource(change)], 2);
  });

  it.each([0, 1, 2])(
    'exponents of MXFP4 that make no numbers, with %i interleaved heads',
    (interleavedHeads) => {
      const rows = 8;
      const bytes = new Uint8Array(3 + rows * 2 * MXFP4_BYTES).fill(120);
      writeFileSync(target, Buffer.alloc(4 * rows * 64));
      for (const block of [0, 5, 11, 15]) {
        const spoilt = Uint8Array.from(bytes);
        spoilt[3 + MXFP4_BYTES * block] = 253;
        writeFileSync(source, spoilt);
        const place = { sourceOffset: 3, sourceByteLength: bytes.length - 3, rows, columns: 64 };
        const job = wholeSource({ ...place, type: 'MXFP4', interleavedHeads });
        expectRefusal(target, [job], 1);
        expect(messageOf(() => convert(target, [job], 1))).toBe(
          `${source}: the scale of a tensor in MXFP4 at byte ${3 + MXFP4_BYTES * block} should be an exponent from 0 to 252, with which weights are numbers, found 253.`,
        );
      }
    },
  );

  it('files that were cut off, and what is no file', () => {
    fresh();
    truncateSync(source, 60);
    expectRefusal(target, [wholeSource({})], 1);
    fresh();
    truncateSync(target, 63);
    expectRefusal(target, [wholeSource({})], 1);
    expectRefusal('/dev/full', [wholeSource({})], 1);
    expectRefusal(join(directory, 'none.bin'), [wholeSource({})], 1);
  });

  it('a source that is cut off while it is read', () => {
    const values = new Uint8Array(4 * 2 ** 20);
    writeFileSync(source, values);
    writeFileSync(target, values);
    const job = wholeSource({ sourceByteLength: values.length, rows: 1024, columns: 1024 });
    const pieces = convertInPieces(target, [job], 1);
    pieces.next();
    truncateSync(source, 2 ** 20 + 12);
    expect(() => [...pieces]).toThrow(
      `${source}: ended at byte ${2 ** 20 + 12} while it was read; it was ${values.length} bytes long before.`,
    );
    expect(statSync(target).size).toBe(values.length);
  });

  it('arguments of the wrong kind', () => {
    fresh();
    for (const given of [
      [],
      [1, [], 1],
      [target, {}, 1],
      [target, [7], 1],
      [target, [], 0],
      [target, [], 1e9],
    ])
      expectRefusal(...(given as Parameters<typeof convert>));
  });
});
