import { describe, expect, it } from 'vitest';
import { isShort } from '../../../../support/scale.js';
import {
  type Dtype,
  dtypesOf,
  expectSameBits,
  fromBf16,
  guarded,
  kernels,
  randomFloats,
  randomOf,
  sharedWeights,
  storable,
  tables,
  tileTables,
} from './kernel-hooks.js';

/** Tables of tiles next to the one that is plain C++: the bits of all are the same. */
const PLAIN = 'emulatedamx';
const twinsOfPlain = [...tileTables, ...tables.filter((table) => table === 'amx')].filter(
  (table) => table !== PLAIN,
);
const TYPES = dtypesOf(PLAIN);

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

/** bf16 of a few magnitudes, so that sums of their products and of f32 are exact in f64. */
function anyNumbers(seed: number): Uint16Array {
  const random = randomOf(seed);
  return Uint16Array.from({ length: 512 }, () => {
    const sign = random() < 0 ? 0x8000 : 0;
    return sign | ((124 + Math.floor((random() + 1) * 4)) << 7) | Math.floor((random() + 1) * 64);
  });
}

describe('tiles', () => {
  it('are emulated on every machine but those of ARM', () => {
    expect(tileTables.includes('emulatedamx')).toBe(process.arch !== 'arm64');
  });
});

describe.each(tileTables.slice(0, 1))('emulated tiles', (table) => {
  it('multiply as loops over pairs do, in shapes of every kind, and leave what lies outside of C', () => {
    for (const height of [1, 2, 7, 15, 16])
      for (const length of [4, 8, 36, 60, 64])
        for (const width of [4, 28, 64]) {
          const [a, b] = [anyNumbers(height), anyNumbers(length)];
          const [x, w] = [fromBf16(a), fromBf16(b)];
          const c = Float32Array.from({ length: 256 }, (_, i) => (i - 100) / 16);
          const wanted = c.slice();
          for (let m = 0; m < height; m++)
            for (let n = 0; n < width / 4; n++) {
              const sums = [0, 0];
              for (let k = 0; k < length / 2; k++)
                sums[k % 2] = Math.fround(
                  sums[k % 2]! + x[m * 32 + k]! * w[(k >> 1) * 32 + 2 * n + (k % 2)]!,
                );
              wanted[m * 16 + n] = Math.fround(wanted[m * 16 + n]! + Math.fround(sums[0]! + sums[1]!));
            }
          const config = configOf([height, width], [height, length], [length / 4, width]);
          kernels.tileProduct(table, { config, a, b, c });
          expect(c).toEqual(wanted);
        }
  });

  it('take numbers below the normal ones as zero, and make zeros of such sums', () => {
    const [a, b, c] = [new Uint16Array(512), new Uint16Array(512), new Float32Array(256)];
    const config = configOf([1, 4], [1, 4], [1, 4]);
    a.set([0x3f80, 0x3f80]);
    b.set([0x0040, 0x0040]);
    c[0] = 2 ** -127;
    kernels.tileProduct(table, { config, a, b, c });
    expect(c[0]).toBe(0);
    // 2^-64 * 2^-64
    a.set([0x1f80, 0]);
    b.set([0x1f80, 0]);
    kernels.tileProduct(table, { config, a, b, c });
    expect(c[0]).toBe(0);
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
  dtype: Dtype;
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

describe.each(twinsOfPlain)('products by tiles, %s', (table) => {
  const expectSame = (problem: Product) =>
    expectSameBits(productOf(table, problem), productOf(PLAIN, problem), () => JSON.stringify(problem));

  it.each(TYPES)('have the bits of plain C++ for every number of rows, %s', (dtype) => {
    // Around the rows of one tile, and of two.
    const counts = [1, 2, 3, 8, 15, 16, 17, 18, 31, 32, 33, 34, 40];
    for (const rows of isShort ? [1, 16, 17, 33] : counts)
      for (const gated of [false, true]) expectSame({ dtype, rows, n: 41, k: 131, gated });
  });

  it.each(TYPES)('have them where a tile or a run is not full, %s', (dtype) => {
    for (const k of [1, 32, 33, 256, 288, 544, 1056, 1100])
      for (const n of k % 64 === 0 ? [1, 33] : [16, 32]) expectSame({ dtype, rows: 18, n, k });
  });

  it.each(TYPES)('have them with bias, residual and adapters, %s', (dtype) => {
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

it.skipIf(twinsOfPlain.length === 0).each(twinsOfPlain)(
  'tiles of %s have the bits of plain C++ with infinities, NaN, denormals and numbers of all sizes',
  (table) => {
    const [rows, n, k] = [19, 40, 200];
    const bits = (count: number, seed: number) => {
      const random = randomOf(seed);
      return Uint16Array.from({ length: count }, (_, i) => {
        const any = Math.floor((random() + 1) * 32768);
        // Mostly what can be summed; a row in eight has anything.
        return Math.floor(i / k) % 8 === 7 ? any : (any & 0x80ff) | ((100 + (any % 50)) << 7);
      });
    };
    const x = fromBf16(bits(rows * k, 3));
    const w = bits(n * k, 5);
    const run = (of: string) => {
      const y = new Float32Array(rows * n);
      kernels.gemm(of, {
        rounded: kernels.round(of, { dtype: 'bf16', x, ldx: k, k, rows }),
        roundedRows: rows,
        ldx: k,
        packed: kernels.pack(of, { dtype: 'bf16', w, n, k, gated: 0 }),
        dtype: 'bf16',
        n,
        k,
        y,
        ldy: n,
        activation: 0,
        rowBegin: 0,
        rowEnd: rows,
        panelBegin: 0,
        panelEnd: 2,
      });
      // One NaN is as good as another.
      return y.map((value) => (Number.isNaN(value) ? Number.NaN : value));
    };
    const wanted = run(PLAIN);
    expect(wanted.some(Number.isNaN)).toBe(true);
    expect(wanted.some(Number.isFinite)).toBe(true);
    expectSameBits(run(table), wanted, () => table);
  },
);

describe('the check of tiles', () => {
  it.each(tileTables)('finds that %s sums in their order, and notices one that computes nothing', (table) => {
    expect(kernels.sumsAsTiles(table, {})).toBe(true);
    expect(kernels.sumsAsTiles(table, { broken: 1 })).toBe(false);
  });

  it.each(tables.filter((table) => table !== 'amx'))('finds that %s does not', (table) => {
    if (kernels.round(table, { dtype: 'bf16', x: new Float32Array(2), ldx: 2, k: 2, rows: 1 }).length > 0)
      expect(kernels.sumsAsTiles(table, {})).toBe(false);
  });
});
