import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  bitsOf,
  type Dtype,
  dtypesOf,
  kernels,
  multipliesPairs,
  multipliesTiles,
  productTables,
  randomFloats,
  storable,
  weightsOf,
} from './kernel-hooks.js';

/**
 * Checksums of products, made by AVX2 on x86-64. The sums over a group are exact and the chains of all tables are the same, so that
 * every processor gives these bits, whatever multiplies: only products of pairs of bf16 have bits of their own.
 */
const STORED: Record<Dtype, string> = {
  f32: '905f4692789a9c87',
  bf16: 'e3bcbeb165a3ab3d',
  int8: 'baf1ffcf94840ddd',
  int4: 'de2cb289191ce99f',
  q4_k: '19603294b9b84bea',
  q5_k: '7f3d0a9da2865e1b',
  q6_k: '3668afc16cad61c5',
  q5_0: 'b48407778e5fa3bf',
  q5_1: 'e8f27fab3c163c33',
  iq4_nl: '2608f880f53f87f8',
  iq4_xs: '6ee7db61c6aad2b9',
  mxfp4: '2c205beda882ebd6',
};

/** The same of tiles of bf16, made by tiles in plain C++. */
const STORED_TILES: Record<Exclude<Dtype, 'f32'>, string> = {
  bf16: 'fe0739e8f2ef83b1',
  int8: '1a30a4102814b878',
  int4: 'd4fb470cfffc292e',
  q4_k: '7508a93be9c1e003',
  q5_k: '1dc801aaad7c0ef0',
  q6_k: '105c8f0f2dc12a64',
  q5_0: 'e4d14aee90c222bd',
  q5_1: '41121b7239053a4e',
  iq4_nl: '5802b9d3f6291d89',
  iq4_xs: '4964af2d5ff50558',
  mxfp4: 'db8ca8944d1af03b',
};

/** More rows than the tallest tile, odd and even heights of tiles, and several panels with an end of one. */
const ROWS = [1, 2, 3, 4, 5, 6, 13];
/** More than one tile and two of AMX. */
const ROWS_OF_TILES = [...ROWS, 17, 40];
const N = 41;
const K = 300;

function product(table: string, dtype: Dtype, rows: number): Float32Array {
  const k = storable(dtype, K);
  const { stored } = weightsOf(dtype, N, k, 3);
  const x = randomFloats(rows * k, 5);
  const rounded = kernels.round(table, { dtype, x, ldx: k, k, rows });
  const y = new Float32Array(rows * N);
  kernels.gemm(table, {
    ...(rounded.length === 0 ? { x } : { rounded, roundedRows: rows }),
    ldx: k,
    packed: kernels.pack(table, { dtype, w: stored, n: N, k, gated: 0 }),
    dtype,
    n: N,
    k,
    y,
    ldy: N,
    activation: 0,
    rowBegin: 0,
    rowEnd: rows,
    panelBegin: 0,
    panelEnd: Math.ceil(N / kernels.shape(table).panelWidth),
  });
  return y;
}

describe.each(productTables)('products, %s', (table) => {
  const hasOwnPairs = multipliesPairs(table) && !multipliesTiles(table);
  it.each(dtypesOf(table).filter((dtype) => dtype !== 'bf16' || !hasOwnPairs))(
    'have the bits that were stored on another processor, %s',
    (dtype) => {
      const hash = createHash('sha256');
      const byTiles = multipliesTiles(table) && dtype !== 'f32';
      for (const rows of byTiles ? ROWS_OF_TILES : ROWS) hash.update(bitsOf(product(table, dtype, rows)));
      expect(hash.digest('hex').slice(0, 16)).toBe(byTiles ? STORED_TILES[dtype] : STORED[dtype]);
    },
  );
});
