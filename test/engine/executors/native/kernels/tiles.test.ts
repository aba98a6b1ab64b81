import { describe, expect, it } from 'vitest';
import { QUANTIZED_TYPES, type QuantizedType } from '../../../../../tools/support/quantized.js';
import { isShort } from '../../../../support/scale.js';
import {
  expectSameBits,
  guarded,
  kernels,
  randomFloats,
  randomOf,
  sharedWeights,
  storable,
  tables,
  tileTables,
} from './kernel-hooks.js';

/** Every table of tiles beside one without them: the bits of all are the same. */
const pairs = [...tileTables, ...tables.filter((table) => table === 'amx')].map(
  (table) => [table, tables.includes('avx512vnni') ? 'avx512vnni' : 'emulated16'] as const,
);

/** The 64 bytes of a configuration in which tiles 0, 4 and 6 are C, A and B; [rows, bytes of a row]. */
function configOf(c: number[], a: number[], b: number[], change: (bytes: Uint8Array) => void = () => {}) {
  const bytes = new Uint8Array(64);
  bytes[0] = 1;
  for (const [tile, [rows, length]] of [[0, c] as const, [4, a] as const, [6, b] as const]) {
    bytes[16 + 2 * tile] = length!;
    bytes[48 + tile] = rows!;
  }
  change(bytes);
  return bytes;
}

function anyBytes(seed: number): Uint8Array {
  const random = randomOf(seed);
  return Uint8Array.from({ length: 1024 }, () => (random() + 1) * 128);
}

describe('tiles', () => {
  it('are emulated on every machine but those of ARM', () => {
    expect(tileTables.includes('emulatedamx')).toBe(process.arch !== 'arm64');
  });
});

describe.each(tileTables.slice(0, 1))('emulated tiles', (table) => {
  it('multiply as three loops do, in shapes of every kind, and leave what lies outside of C', () => {
    for (const height of [1, 2, 7, 15, 16])
      for (const length of [4, 8, 36, 60, 64])
        for (const width of [4, 28, 64]) {
          const [a, b] = [anyBytes(height), anyBytes(length)];
          const c = Int32Array.from({ length: 256 }, (_, i) => (i - 100) * 1e6);
          const wanted = c.slice();
          for (let m = 0; m < height; m++)
            for (let n = 0; n < width / 4; n++)
              for (let k = 0; k < length; k++) {
                const x = (a[m * 64 + k]! << 24) >> 24;
                const w = (b[(k >> 2) * 64 + 4 * n + (k & 3)]! << 24) >> 24;
                wanted[m * 16 + n] = wanted[m * 16 + n]! + x * w;
              }
          const config = configOf([height, width], [height, length], [length / 4, width]);
          kernels.tileProduct(table, { config, a, b, c });
          expect(c).toEqual(wanted);
        }
  });

  it('wrap sums around', () => {
    const [a, b] = [new Uint8Array(1024).fill(1), new Uint8Array(1024).fill(1)];
    const c = new Int32Array(256).fill(2 ** 31 - 1);
    kernels.tileProduct(table, { config: configOf([1, 4], [1, 4], [1, 4]), a, b, c });
    expect(c[0]).toBe(-(2 ** 31) + 3);
  });

  it.each([
    ['a palette other than 1', configOf([1, 4], [1, 4], [1, 4], (bytes) => bytes.fill(2, 0, 1))],
    ['a row to start at', configOf([1, 4], [1, 4], [1, 4], (bytes) => bytes.fill(1, 1, 2))],
    ['a reserved byte', configOf([1, 4], [1, 4], [1, 4], (bytes) => bytes.fill(1, 15, 16))],
    ['there are eight tiles', configOf([1, 4], [1, 4], [1, 4], (bytes) => bytes.fill(1, 56, 57))],
    ['at most 16 rows of 64 bytes', configOf([17, 64], [17, 32], [8, 64])],
    ['at most 16 rows of 64 bytes', configOf([16, 68], [16, 32], [8, 68])],
    ['rows without bytes', configOf([16, 0], [16, 32], [8, 64])],
    ['without a shape', configOf([16, 64], [16, 32], [0, 0])],
    ['no multiple of 4', configOf([16, 62], [16, 32], [8, 62])],
    ['different numbers of rows', configOf([16, 64], [15, 32], [8, 64])],
    ['rows of different lengths', configOf([16, 64], [16, 32], [8, 60])],
    ['not as many rows as A has words', configOf([16, 64], [16, 32], [9, 64])],
  ])('raise the fault of the processor: %s', (fault, config) => {
    const [a, b, c] = [anyBytes(1), anyBytes(2), new Int32Array(256)];
    expect(() => kernels.tileProduct(table, { config, a, b, c })).toThrow(fault);
  });
});

interface Product {
  dtype: QuantizedType;
  rows: number;
  n: number;
  k: number;
  gated?: boolean;
  bias?: boolean;
  residual?: boolean;
  adapted?: boolean;
}

/** A product of one table, between guards of NaN. */
function productOf(table: string, given: Product): Float32Array {
  const { dtype, rows, n, gated = false } = given;
  const k = storable(dtype, given.k);
  const parts = gated ? 2 : 1;
  const x = randomFloats(rows * k, 5);
  const y = guarded(rows, n, n + 5, new Float32Array(rows * n));
  const rank = 3;
  kernels[gated ? 'gatedGemm' : 'gemm'](table, {
    rounded: kernels.round(table, { dtype, x, ldx: k, k, rows }),
    roundedRows: rows,
    ldx: k,
    packed: kernels.pack(table, {
      dtype,
      w: sharedWeights(dtype, parts * n, k).stored,
      n,
      k,
      gated: parts - 1,
    }),
    dtype,
    n,
    k,
    bias: given.bias ? randomFloats(parts * n, 7) : null,
    residual: given.residual ? randomFloats(rows * n, 11) : null,
    ldr: n,
    y: y.view,
    ldy: n + 5,
    activation: gated ? 1 : 0,
    rowBegin: 0,
    rowEnd: rows,
    panelBegin: 0,
    panelEnd: Math.ceil(n / kernels.shape(table).panelWidth),
    adapted: given.adapted ? Int32Array.from({ length: rows }, (_, row) => Number(row % 5 !== 2)) : null,
    rank,
    adapterB: randomFloats(n * rank, 13),
    adapterT: randomFloats(rows * rank, 15),
  });
  expect(y.guardsIntact()).toBe(true);
  return Float32Array.from({ length: rows * n }, (_, i) => y.row(Math.floor(i / n))[i % n]!);
}

describe.each(pairs)('products by tiles, %s', (table, plain) => {
  const expectSame = (problem: Product) =>
    expectSameBits(productOf(table, problem), productOf(plain, problem), () => JSON.stringify(problem));

  it.each(QUANTIZED_TYPES)('have the bits of dot products for every number of rows, %s', (dtype) => {
    // Around the rows of one tile, and of two.
    const counts = [1, 2, 3, 8, 15, 16, 17, 18, 31, 32, 33, 34, 40];
    for (const rows of isShort ? [1, 16, 17, 33] : counts)
      for (const gated of [false, true]) expectSame({ dtype, rows, n: 41, k: 131, gated });
  });

  it.each(QUANTIZED_TYPES)('have them where a part or a turn is not full, %s', (dtype) => {
    for (const k of [1, 32, 33, 64, 96, 512, 544, 576, 1056])
      for (const n of k % 64 === 0 ? [1, 33] : [16, 32]) expectSame({ dtype, rows: 18, n, k });
  });

  it.each(QUANTIZED_TYPES)('have them with bias, residual and adapters, %s', (dtype) => {
    for (const bias of [false, true])
      for (const residual of [false, true])
        for (const adapted of [false, true]) {
          // Each number of rows with two of the eight.
          const rows = isShort
            ? 19
            : [9, 16, 19, 34][(Number(bias) + 2 * Number(residual) + Number(adapted)) % 4]!;
          const problem = { dtype, rows, n: 70, k: 160, bias, residual, adapted };
          expectSame(problem);
          if (adapted && !bias && !residual)
            expect(productOf(table, problem)).not.toEqual(productOf(table, { ...problem, adapted: false }));
        }
  });
});

describe('comparison of products', () => {
  it.each([...tables, ...tileTables])('finds %s alike, and notices one that computes nothing', (table) => {
    expect(kernels.compareProducts(table, {})).toBe(true);
    expect(kernels.compareProducts(table, { broken: 1 })).toBe(false);
  });
});
