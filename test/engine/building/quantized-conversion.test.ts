import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toHalf } from '../../../base/half.js';
import { convertPortably, weightConverter } from '../../../engine/building/weight-converter.js';
import type { ConvertJob } from '../../../engine/directory/convert-job.js';
import type { TensorPrecision } from '../../../engine/directory/engine-directory.js';
import { storedBytes } from '../../../engine/directory/weight-blocks.js';
import { nativeAddonAvailable } from '../../../engine/executors/native/load-addon.js';
import { blockType } from '../../../models/checkpoints/quantized/quantized-blocks.js';
import { codeBits, type QuantizedSource } from '../../../models/checkpoints/quantized/quantized-source.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { draws } from '../../support/scale.js';

const folder = temporaryFolder('skein-quantized-conversion');
const target = join(folder, 'target.bin');
/** TypeScript's, and the addon's where there is one. */
const converters = nativeAddonAvailable() ? [convertPortably, weightConverter()] : [convertPortably];

interface Matrix {
  rows: number;
  columns: number;
  codes: QuantizedSource['codes'];
  order: QuantizedSource['order'];
  rowsEach: number;
  columnsEach: number;
  zeros: boolean;
  groups: boolean;
  heads: number;
  seed: number;
}

/** Writes a matrix of random bytes, its parts in two files, and returns its job. */
function written(matrix: Matrix): ConvertJob {
  const { rows, columns, codes, order, rowsEach, columnsEach, seed } = matrix;
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state;
  };
  const bytes = (length: number) => Uint8Array.from({ length }, () => random() >>> 24);
  const bits = codeBits(codes);
  const down = Math.ceil(rows / rowsEach);
  const across = Math.ceil(columns / columnsEach);
  const halves = Uint16Array.from({ length: down * across }, () => toHalf(((random() % 1000) + 1) / 4096));
  const order32 = Int32Array.from({ length: columns }, () => random() % across);
  const codeBytes = bytes(
    order === 'rows' ? rows * Math.ceil((columns * bits) / 8) : (rows * columns * bits) / 8,
  );
  const zeroBytes = bytes(4 * Math.ceil(down / (32 / bits)) * across);
  const [one, other] = [join(folder, 'one.bin'), join(folder, 'other.bin')];
  writeFileSync(one, Buffer.concat([Buffer.alloc(7), codeBytes, zeroBytes]));
  writeFileSync(
    other,
    Buffer.concat([Buffer.alloc(5), new Uint8Array(halves.buffer), new Uint8Array(order32.buffer)]),
  );
  const quantized: QuantizedSource = {
    name: 'a.weight',
    codes,
    order,
    zero: codes === 'u4' ? 8 : codes === 'u8' ? 128 : 0,
    rowsEach,
    columnsEach,
    scales: {
      file: other,
      offset: 5,
      byteLength: halves.byteLength,
      type: 'F16',
      byColumns: order !== 'rows',
    },
    ...(matrix.zeros && {
      zeros: {
        file: one,
        offset: 7 + codeBytes.length,
        byteLength: zeroBytes.length,
        order: order === 'rows' ? 'packedRows' : order,
        add: order === 'gptq' ? 1 : 0,
      },
    }),
    ...(matrix.groups && {
      groups: { file: other, offset: 5 + halves.byteLength, byteLength: order32.byteLength },
    }),
  };
  return {
    source: one,
    sourceOffset: 7,
    sourceByteLength: codeBytes.length,
    type: blockType(quantized, columns),
    rows,
    columns,
    interleavedHeads: matrix.heads,
    quantized,
    targetOffset: 0,
    targetType: 'f32',
  };
}

/** True if both are the same bytes, or the same message. */
const same = (one: Buffer | string, other: Buffer | string) =>
  typeof one === 'string' || typeof other === 'string' ? one === other : one.equals(other);

async function results(
  job: ConvertJob,
  dtype: TensorPrecision,
): Promise<[portable: Buffer | string, native: Buffer | string]> {
  const made: (Buffer | string)[] = [];
  for (const convert of converters) {
    writeFileSync(target, Buffer.alloc(storedBytes(dtype, job.rows, job.columns)));
    try {
      await convert(target, [{ ...job, targetType: dtype }], { threads: 2 });
      made.push(readFileSync(target));
    } catch (error) {
      made.push((error as Error).message);
    }
  }
  return [made[0]!, made.at(-1)!];
}

const matrices = fc
  .record({
    rows: fc.integer({ min: 1, max: 9 }),
    columns: fc.integer({ min: 1, max: 6 }),
    codes: fc.constantFrom('u4' as const, 'u8' as const, 'i8' as const, 'e4m3' as const, 'e2m1' as const),
    order: fc.constantFrom('rows' as const, 'gptq' as const, 'awq' as const),
    rowsEach: fc.constantFrom(1, 3, 128),
    columnsEach: fc.constantFrom(16, 32, 48, 64, 1024),
    zeros: fc.boolean(),
    groups: fc.boolean(),
    heads: fc.constantFrom(0, 1, 2),
    seed: fc.nat(),
  })
  .map(({ rows, columns, codes, order, zeros, ...matrix }): Matrix => {
    const isPacked = codes === 'u4' || (codes === 'u8' && order === 'gptq');
    const own = isPacked ? order : 'rows';
    return {
      ...matrix,
      rows: 8 * rows,
      // Rows that end inside of a byte, where the order lets them.
      columns: own === 'rows' ? 32 * columns - (matrix.seed % 2) : 32 * columns,
      codes,
      order: own,
      rowsEach: own === 'rows' ? matrix.rowsEach : 1,
      zeros: zeros && (codes === 'u4' || codes === 'u8'),
    };
  });

describe('a quantised matrix', () => {
  it('comes out the same by the addon and by TypeScript, in every precision', async () => {
    await fc.assert(
      fc.asyncProperty(
        matrices,
        fc.constantFrom('f32' as const, 'bf16' as const, 'int8' as const, 'int4' as const),
        async (matrix, dtype) => {
          const [portable, native] = await results(written(matrix), dtype);
          expect(portable).toBeInstanceOf(Buffer);
          expect(same(native, portable)).toBe(true);
        },
      ),
      { numRuns: draws(60) },
    );
  });

  it('is as each formula says, in many pieces', async () => {
    // 2^18 elements are a piece of what lies by rows, 2^22 of what lies by columns.
    const wide = {
      rows: 1032,
      columns: 4128,
      rowsEach: 1,
      columnsEach: 32,
      zeros: true,
      groups: false,
      heads: 0,
      seed: 3,
    };
    for (const order of ['rows', 'gptq', 'awq'] as const) {
      const rows = order === 'rows' ? 136 : wide.rows;
      const job = written({ ...wide, rows, codes: 'u4', order });
      const [portable, native] = await results(job, 'f32');
      expect(same(native, portable)).toBe(true);
      const bytes = portable as Buffer;
      const one = readFileSync(job.source);
      const { scales, zeros } = job.quantized!;
      const halves = readFileSync(scales.file);
      const groups = Math.ceil(job.columns / 32);
      for (let at = 0; at < 2000; at++) {
        const [row, column] = [(at * 7919) % job.rows, (at * 104729) % job.columns];
        const group = Math.floor(column / 32);
        const place = [0, 4, 1, 5, 2, 6, 3, 7];
        const codeBit = {
          rows: 4 * (row * job.columns + column),
          gptq: 32 * (Math.floor(column / 8) * job.rows + row) + 4 * (column % 8),
          awq: 32 * ((column * job.rows) / 8 + Math.floor(row / 8)) + 4 * place[row % 8]!,
        }[order];
        const zeroBit = {
          rows: 32 * (Math.floor(row / 8) * groups + group) + 4 * (row % 8),
          gptq: 32 * (group * (job.rows / 8) + Math.floor(row / 8)) + 4 * (row % 8),
          awq: 32 * (group * (job.rows / 8) + Math.floor(row / 8)) + 4 * place[row % 8]!,
        }[order];
        const nibble = (base: number, bit: number) => (one[base + (bit >> 3)]! >> (bit & 4)) & 15;
        const word = one.readUInt32LE(zeros!.offset + 4 * Math.floor(zeroBit / 32));
        const zero = (((word + zeros!.add * 0x11111111) >>> 0) >>> (zeroBit % 32)) & 15;
        const half = halves.readUInt16LE(
          scales.offset + 2 * (order === 'rows' ? row * groups + group : group * job.rows + row),
        );
        const scale = (1 + (half & 1023) / 1024) * 2 ** ((half >> 10) - 15);
        const value = bytes.readFloatLE(4 * (row * job.columns + column));
        expect(value, `${order} ${row} ${column}`).toBe(
          (nibble(job.sourceOffset, codeBit) - zero) * scale + 0,
        );
      }
    }
  });

  it.each<[what: string, change: (job: ConvertJob) => void, message: RegExp]>([
    [
      'a column in no group',
      ({ quantized }) => {
        delete quantized!.zeros;
        quantized!.columnsEach = 4096;
        quantized!.scales.byteLength = 16;
      },
      /column \d+ of a\.weight should be in a group below 1, found \d+\.$/,
    ],
    [
      'too few scales',
      ({ quantized }) => {
        quantized!.scales.byteLength -= 2;
      },
      /the scales of a\.weight take 64 bytes, found 62\.$/,
    ],
    [
      'too few zero points',
      ({ quantized }) => {
        quantized!.zeros!.byteLength = 4;
      },
      /the zero points of a\.weight take 16 bytes, found 4\.$/,
    ],
    [
      'too few codes',
      (job) => {
        job.sourceByteLength -= 4;
      },
      /the codes of a\.weight take another number of bytes than 508\.$/,
    ],
    [
      'scales beyond the file',
      ({ quantized }) => {
        quantized!.scales.offset = 2 ** 40;
      },
      /lie beyond the file's \d+ bytes\.$/,
    ],
    [
      'a file that is gone',
      ({ quantized }) => {
        quantized!.scales.file += '.gone';
      },
      /one|other\.bin\.gone: cannot be opened/,
    ],
    [
      'a type of other blocks',
      (job) => {
        job.type = 'Q4_K';
        job.columns = 256;
      },
      /a\.weight cannot be read as Q4_K\.$/,
    ],
  ])('is refused by both with %s', async (_, change, message) => {
    const job = written({
      rows: 8,
      columns: 128,
      codes: 'u4',
      order: 'gptq',
      rowsEach: 1,
      columnsEach: 32,
      zeros: true,
      groups: true,
      heads: 0,
      seed: 1,
    });
    change(job);
    const [portable, native] = await results(job, 'f32');
    expect(portable).toMatch(message);
    expect(native).toBe(portable);
  });

  it('is refused where a scale is too large for half precision', async () => {
    const job = written({
      rows: 8,
      columns: 64,
      codes: 'u4',
      order: 'gptq',
      rowsEach: 1,
      columnsEach: 32,
      zeros: false,
      groups: false,
      heads: 0,
      seed: 1,
    });
    const scales = Float32Array.from({ length: 16 }, (_, i) => (i === 9 ? 1e6 : 1));
    const file = join(folder, 'scales.bin');
    writeFileSync(file, scales);
    job.quantized!.scales = { file, offset: 0, byteLength: 64, type: 'F32', byColumns: true };
    const [portable, native] = await results(job, 'int4');
    expect(portable).toMatch(/row 1 of a\.weight has a scale beyond 65504/);
    expect(native).toBe(portable);
    truncateSync(file, 0);
  });
});
