import { describe, expect, it } from 'vitest';
import { fromHalf } from '../../../../../base/half.js';
import { exactConversion } from '../../../../../engine/executors/portable/convert/exact-conversion.js';
import { Random } from '../../../../../tools/support/random.js';
import { randomMatrix } from '../../../../support/superblock-model.js';
import {
  type Dtype,
  isEmulated,
  kernels,
  productTables,
  randomFloats,
  tables,
  toBf16,
} from './kernel-hooks.js';

/** Each type of blocks, the format that packing makes of it, and the elements and bytes of a block. */
const TYPES: readonly [type: string, dtype: Dtype, elements: number, bytes: number][] = [
  ['Q4_0', 'int4', 32, 18],
  ['Q4_1', 'int4', 32, 20],
  ['Q5_0', 'q5_0', 32, 22],
  ['Q5_1', 'q5_1', 32, 24],
  ['Q8_0', 'int8', 32, 34],
  ['Q3_K', 'q6_k', 256, 110],
  ['Q4_K', 'q4_k', 256, 144],
  ['Q5_K', 'q5_k', 256, 176],
  ['Q6_K', 'q6_k', 256, 210],
  ['IQ4_NL', 'iq4_nl', 32, 18],
  ['IQ4_XS', 'iq4_xs', 256, 136],
  ['MXFP4', 'mxfp4', 32, 17],
];

/** Rows of a GGUF in memory that ends with the last one, so that a sanitizer finds a read past its end. */
const exactly = (bytes: Uint8Array): Uint8Array => bytes.slice();

/** What conversion makes of rows, which is then packed. */
function converted(
  type: string,
  dtype: Dtype,
  stored: Uint8Array,
  blocks: number,
  bytes: number,
): Uint8Array {
  const target = new Uint8Array(blocks * bytes);
  exactConversion(type, dtype as 'int4')!(stored, blocks, target);
  return target;
}

const CONVERTED_BYTES: Readonly<Record<string, number>> = { Q4_0: 20, Q3_K: 210 };

interface Matrix {
  stored: Uint8Array;
  packed: Uint8Array;
}

function matrixOf(
  table: string,
  [type, dtype, elements, bytes]: (typeof TYPES)[number],
  { n, k, gated = false, seed = 1 }: { n: number; k: number; gated?: boolean; seed?: number },
): Matrix {
  const rows = gated ? 2 * n : n;
  const stored = exactly(randomMatrix(type, rows, k, new Random(seed)));
  const w = converted(type, dtype, stored, (rows * k) / elements, CONVERTED_BYTES[type] ?? bytes);
  return { stored, packed: kernels.pack(table, { dtype, w, n, k, gated: gated ? 1 : 0 }) };
}

/** Rows in the order of llama.cpp: the halves of a head take turns. */
function interleaved(rows: Uint8Array, n: number, headRows: number): Uint8Array {
  const bytes = rows.length / n;
  const result = new Uint8Array(rows.length);
  for (let row = 0; row < n; row++) {
    const inside = row % headRows;
    const size = headRows / 2;
    const place = row - inside + 2 * (inside % size) + Math.floor(inside / size);
    result.set(rows.subarray(row * bytes, (row + 1) * bytes), place * bytes);
  }
  return result;
}

/** The product of rows of activations, by the packed matrix or by the stored one. */
function product(
  table: string,
  dtype: Dtype,
  weight: Partial<Matrix> & { type?: string; headRows?: number },
  { n, k, rows, gated = false }: { n: number; k: number; rows: number; gated?: boolean },
): Float32Array {
  const x = randomFloats(rows * k, 5);
  const y = new Float32Array(rows * n).fill(7);
  const rounded = kernels.round(table, { dtype, x, ldx: k, k, rows });
  const panels = Math.ceil(n / kernels.shape(table).panelWidth);
  kernels[gated ? 'gatedGemm' : 'gemm'](table, {
    ...weight,
    packed: weight.packed ?? null,
    stored: weight.stored ?? null,
    dtype,
    n,
    k,
    x,
    ldx: k,
    rounded,
    roundedRows: rows,
    bias: randomFloats(gated ? 2 * n : n, 9),
    y,
    ldy: n,
    residual: null,
    activation: 1,
    rowBegin: 0,
    rowEnd: rows,
    panelBegin: 0,
    panelEnd: panels,
  });
  return y;
}

describe.each(productTables)('products of rows as a GGUF has them, %s', (table) => {
  const counts = isEmulated(table) ? [1, 3, 13] : [1, 2, 3, 5, 6, 7, 8, 12, 13, 40, 97];

  it.each(TYPES)('%s has the bits of the packed matrix', (...type) => {
    const [name, dtype] = type;
    for (const [n, k] of [
      [37, 512],
      [64, 1280],
    ] as const) {
      const { stored, packed } = matrixOf(table, type, { n, k });
      for (const rows of counts) {
        const wanted = product(table, dtype, { packed }, { n, k, rows });
        expect(product(table, dtype, { stored, type: name }, { n, k, rows })).toEqual(wanted);
        expect(wanted.some(Number.isNaN)).toBe(false);
      }
    }
  });

  it.each(TYPES)('%s has them as gate and up too', (...type) => {
    const [name, dtype] = type;
    const sizes = { n: 45, k: 256, gated: true };
    const { stored, packed } = matrixOf(table, type, sizes);
    for (const rows of counts) {
      const wanted = product(table, dtype, { packed }, { ...sizes, rows });
      expect(product(table, dtype, { stored, type: name }, { ...sizes, rows })).toEqual(wanted);
    }
  });

  // The rows of a panel lie at equal distances where it is no wider than half a head.
  it.each([16, 64])('finds the rows of heads of %i whose halves take turns', (headRows) => {
    const [n, k] = [64, 64];
    const { stored, packed } = matrixOf(table, TYPES[0]!, { n, k });
    const turned = { stored: interleaved(stored, n, headRows), type: 'Q4_0', headRows };
    for (const rows of [1, 2]) {
      const wanted = product(table, 'int4', { packed }, { n, k, rows });
      expect(product(table, 'int4', turned, { n, k, rows })).toEqual(wanted);
    }
  });

  it('has the scales of packed blocks at the ends of their range', () => {
    const [n, k] = [32, 64];
    // f16: 2^-24, the least that is normal, the last whose eightfold is a number, and the first whose eightfold is none.
    const halves = [0x0001, 0x8001, 0x0400, 0x6fff, 0xefff, 0x7000, 0xf000, 0x7bff, 0];
    const exponents = [0, 1, 2, 3, 200, 255];
    for (const type of TYPES.filter(([name]) => name === 'Q4_0' || name === 'MXFP4')) {
      const [name, dtype, elements, bytes] = type;
      const { stored } = matrixOf(table, type, { n, k });
      const blocks = new DataView(stored.buffer);
      for (let block = 0; block < (n * k) / elements; block++) {
        if (name === 'Q4_0') blocks.setUint16(block * bytes, halves[block % halves.length]!, true);
        else blocks.setUint8(block * bytes, exponents[block % exponents.length]!);
      }
      const w = converted(name, dtype, stored, (n * k) / elements, CONVERTED_BYTES[name] ?? bytes);
      const packed = kernels.pack(table, { dtype, w, n, k, gated: 0 });
      for (const rows of [1, 4]) {
        const wanted = product(table, dtype, { packed }, { n, k, rows });
        expect(product(table, dtype, { stored, type: name }, { n, k, rows })).toEqual(wanted);
      }
    }
  });

  it('takes rows of any number of blocks', () => {
    for (const k of [32, 96, 544, 928]) {
      const { stored, packed } = matrixOf(table, TYPES[1]!, { n: 20, k });
      const wanted = product(table, 'int4', { packed }, { n: 20, k, rows: 3 });
      expect(product(table, 'int4', { stored, type: 'Q4_1' }, { n: 20, k, rows: 3 })).toEqual(wanted);
    }
  });
});

describe.each(tables)('panels of numbers as a GGUF has them, %s', (table) => {
  const halves = Uint16Array.from({ length: 32 * 21 }, (_, i) => (i * 977) & 0xffff);

  it.each([8, 20, 21])(
    'F32, F16 and BF16 are packed as conversion and packing make them, rows of %i',
    (k) => {
      const n = 32;
      const values = randomFloats(n * k, 3);
      const own = halves.slice(0, n * k);
      const rounded = toBf16(Float32Array.from(own, fromHalf));
      // What is not a number has a payload of its own.
      const quiet = rounded.map((value, i) => (Number.isNaN(fromHalf(own[i]!)) ? bf16OfNan(own[i]!) : value));
      const cases: [string, Dtype, Uint8Array, Float32Array | Uint16Array][] = [
        ['F32', 'f32', new Uint8Array(values.slice().buffer), values],
        ['BF16', 'bf16', new Uint8Array(own.slice().buffer), own],
        ['F16', 'bf16', new Uint8Array(own.slice().buffer), quiet],
      ];
      for (const [type, dtype, stored, w] of cases) {
        const packed = kernels.pack(table, { dtype, w, n, k });
        expect(Buffer.from(kernels.packStored(table, { type, stored, n, k })).equals(packed), type).toBe(
          true,
        );
      }
    },
  );
});

/** A NaN of f16 as bf16: quiet, with the upper bits of its payload. */
const bf16OfNan = (half: number) => ((half & 0x8000) | 0x7fc0 | ((half & 0x3ff) >> 3)) & 0xffff;
