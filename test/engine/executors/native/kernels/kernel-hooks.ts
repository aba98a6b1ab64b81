import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import {
  blockElements,
  GROUP,
  QUANTIZED_TYPES,
  type QuantizedType,
  randomBlocks,
} from '../../../../../tools/support/quantized.js';
import { isShort } from '../../../../support/scale.js';

export type Dtype = 'f32' | 'bf16' | QuantizedType;
export const DTYPES: readonly Dtype[] = ['f32', 'bf16', ...QUANTIZED_TYPES];
export const isQuantized = (dtype: Dtype): dtype is QuantizedType => dtype !== 'f32' && dtype !== 'bf16';
/** The least length of rows from `columns` on that the type can store: superblocks are not filled up. */
export const storable = (dtype: Dtype, columns: number): number =>
  isQuantized(dtype) && blockElements(dtype) > GROUP
    ? Math.ceil(columns / blockElements(dtype)) * blockElements(dtype)
    : columns;
type Arrays = Float32Array | Float64Array | Uint16Array | Int32Array | Uint8Array | null;
type Fields = Record<string, number | string | Arrays>;

/** What the passes of wide_row.h return; they also write to arrays of the fields. */
export interface WideRowResults {
  sum: number;
  moment: number;
  present: number;
  squares: number;
  least: number;
  between: number;
  kept: number;
  inBuckets: number;
}

/** Functions that engine/executors/native/kernels/test_hooks.cpp exports; the first argument names the table. */
interface KernelHooks {
  names(): string[];
  tileNames(): string[];
  /** a, b and c: 16 rows of 64 bytes. Not on ARM. */
  tileProduct(table: string, fields: Fields): void;
  sumsAsTiles(table: string, fields: Fields): boolean;
  shape(table: string): { panelWidth: number; tileRows: number };
  pack(table: string, fields: Fields): Uint8Array;
  packStored(table: string, fields: Fields): Uint8Array;
  round(table: string, fields: Fields): Uint8Array;
  gemm(table: string, fields: Fields): void;
  gatedGemm(table: string, fields: Fields): void;
  storeKv(table: string, fields: Fields): void;
  attention(table: string, fields: Fields): void;
  rmsNorm(table: string, fields: Fields): void;
  scaleRow(table: string, fields: Fields): void;
  softCapRow(table: string, fields: Fields): void;
  xieluRow(table: string, fields: Fields): void;
  gateRow(table: string, fields: Fields): void;
  shortConv(table: string, fields: Fields): void;
  gatedDelta(table: string, fields: Fields): void;
  /** head, b and c: columns of x. */
  selectiveScan(table: string, fields: Fields): void;
  layerNorm(table: string, fields: Fields): void;
  meanRows(table: string, fields: Fields): void;
  unitRow(table: string, fields: Fields): void;
  addEmbeddingRow(table: string, fields: Fields): void;
  embeddingRow(table: string, fields: Fields): void;
  ropeAngles(table: string, fields: Fields): void;
  rope(table: string, fields: Fields): void;
  argmax(table: string, fields: Fields): { index: number; maximum: number };
  sumExp(table: string, fields: Fields): number;
  expRow(table: string, fields: Fields): void;
  chunkExp(table: string, fields: Fields): void;
  chunkExpAbove(table: string, fields: Fields): void;
  indicesFrom(table: string, fields: Fields): number;
  wideRow(table: string, fields: Fields): WideRowResults;
  peak(table: string, fields: Fields): number;
}

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../../../../../', import.meta.url));
export const kernels: KernelHooks = require('node-gyp-build')(root).kernels;
export const tables = kernels.names();
/** Tables of AMX's kernels with tiles in plain C++, whose products are their own. */
export const tileTables = kernels.tileNames();
/** Tables with products of their own, and the formats of these. Where each instruction of tiles is a trap, only tiles.test.ts waits for it. */
export const productTables = [...tables, ...tileTables.filter((table) => table !== 'trappedamx')];
export const dtypesOf = (table: string): readonly Dtype[] =>
  tileTables.includes(table) ? DTYPES.filter((dtype) => dtype !== 'f32') : DTYPES;

/** Tables that must agree bit for bit: the instruction sets of this processor and their twins in plain C++, which a short addon has not all. */
export const twins = [
  ['avx2', 'scalar'],
  ['avxvnni', 'scalar'],
  ['avx512', 'emulated16'],
  ['avx512vnni', 'emulated16'],
  ['avx512bf16', 'emulated16pairs'],
  ['amx', 'emulatedamx'],
  ['neon', 'scalar'],
  ['neondot', 'scalar'],
  ['neoni8mm', 'scalar'],
  ['neonbf16', 'emulated8pairs'],
].filter(
  (pair): pair is [string, string] =>
    tables.includes(pair[0]!) && !(isShort && ![...tables, ...tileTables].includes(pair[1]!)),
);

/** True for tables that multiply tiles of bf16, and so round rows and weights of all formats but f32. */
export const multipliesTiles = (table: string) => table === 'amx' || tileTables.includes(table);

/** Emulated tables whose bits are those of a table of this processor: where a test compares the two, its others try that one alone. */
const emulatedTwins = twins.map(([, twin]) => twin).filter((table) => table.startsWith('emulated'));
const isTriedAlone = (table: string) => !emulatedTwins.includes(table);

/** Tables, those with products, and those with attention of their own, for tests that stand next to a comparison of `twins`. */
export const rowTables = tables.filter(isTriedAlone);
export const gemmTables = productTables.filter(isTriedAlone);
export const attentionTables = gemmTables;

/** True for tables that multiply bf16 as pairs, and so round rows, queries and probabilities. */
export const multipliesPairs = (table: string) =>
  multipliesTiles(table) || table.endsWith('bf16') || table.endsWith('pairs');

/** Emulated vectors are far slower: tests give them less. */
export const isEmulated = (table: string) => table === 'scalar' || table.startsWith('emulated');

/** A small generator with a fixed seed: values in -1 .. 1. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

export function randomFloats(length: number, seed: number): Float32Array {
  return Float32Array.from({ length }, randomOf(seed));
}

/** f32 -> bf16 bits, to nearest even (finite values). */
export function toBf16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.slice().buffer);
  return Uint16Array.from(bits, (b) => (b + 0x7fff + ((b >>> 16) & 1)) >>> 16);
}

export function fromBf16(values: Uint16Array): Float32Array {
  return new Float32Array(Uint32Array.from(values, (v) => v << 16).buffer);
}

/** Row-major weights as an engine holds them, f32 and bf16 with NaN on both sides, and the values that they stand for. */
export function weightsOf(dtype: Dtype, rows: number, columns: number, seed: number) {
  const length = rows * columns;
  if (isQuantized(dtype)) {
    const random = randomOf(seed);
    const { stored, exact } = randomBlocks(dtype, rows, columns, () => (random() + 1) / 2);
    return { stored, exact: Float32Array.from(exact) };
  }
  const exact = randomFloats(length, seed);
  if (dtype === 'f32') return { stored: guardedRow(exact), exact };
  const rounded = toBf16(exact);
  const all = new Uint16Array(length + 64).fill(0x7fc0);
  all.set(rounded, 32);
  return { stored: all.subarray(32, 32 + length), exact: fromBf16(rounded) };
}

/**
 * Weights that are the same for every table and setting: making them costs more than most products. They are
 * never changed.
 */
const madeWeights = new Map<string, ReturnType<typeof weightsOf>>();
export function sharedWeights(dtype: Dtype, rows: number, columns: number): ReturnType<typeof weightsOf> {
  const key = `${dtype} ${rows} ${columns}`;
  const made = madeWeights.get(key) ?? weightsOf(dtype, rows, columns, 3);
  madeWeights.set(key, made);
  return made;
}

/** The same weights as tiles multiply them, each cut to bf16: the product of rows that have a single 1. */
const madeTiles = new Map<string, Float32Array>();
export function weightsOfTiles(table: string, dtype: Dtype, n: number, k: number): Float32Array {
  const key = `${table} ${dtype} ${n} ${k}`;
  const made = madeTiles.get(key) ?? transposed(productOfUnits(table, dtype, n, k), k, n);
  madeTiles.set(key, made);
  return made;
}

function productOfUnits(table: string, dtype: Dtype, n: number, k: number): Float32Array {
  const x = Float32Array.from({ length: k * k }, (_, i) => (i % (k + 1) === 0 ? 1 : 0));
  const y = new Float32Array(k * n);
  kernels.gemm(table, {
    rounded: kernels.round(table, { dtype, x, ldx: k, k, rows: k }),
    roundedRows: k,
    ldx: k,
    packed: kernels.pack(table, { dtype, w: sharedWeights(dtype, n, k).stored, n, k, gated: 0 }),
    dtype,
    n,
    k,
    y,
    ldy: n,
    activation: 0,
    rowBegin: 0,
    rowEnd: k,
    panelBegin: 0,
    panelEnd: Math.ceil(n / kernels.shape(table).panelWidth),
  });
  return y;
}

const transposed = (values: Float32Array, rows: number, columns: number) =>
  values.map((_, i) => values[(i % rows) * columns + Math.floor(i / rows)]!);

/** A matrix of NaN with guards before, between (stride > width) and after its rows. */
export function guarded(rows: number, width: number, stride: number, fill?: Float32Array) {
  const guard = 64;
  const all = new Float32Array(2 * guard + rows * stride).fill(Number.NaN);
  for (let r = 0; fill && r < rows; r++)
    all.set(fill.subarray(r * width, (r + 1) * width), guard + r * stride);
  const inside = all.subarray(guard, guard + rows * stride);
  const row = (r: number) => inside.subarray(r * stride, r * stride + width);
  const guardsIntact = () =>
    all.every((value, i) => {
      const at = i - guard;
      const isInside = at >= 0 && at < rows * stride && at % stride < width;
      return isInside || Number.isNaN(value);
    });
  return { view: inside, row, guardsIntact };
}

/** A row between guards of NaN, which must be neither read nor written. */
export function guardedRow(values: Float32Array) {
  return guarded(1, values.length, values.length, values).view;
}

export function bitsOf(values: Float32Array): Buffer {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength);
}

/** Throws naming the place where two rows differ in a bit; cheap enough for loops over thousands of rows. */
export function expectSameBits(actual: Float32Array, wanted: Float32Array, place: () => string) {
  if (!bitsOf(actual).equals(bitsOf(wanted))) throw new Error(`rows differ: ${place()}`);
}
