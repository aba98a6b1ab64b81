import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { ConvertJob } from '../../../../engine/directory/convert-job.js';
import { storedBytes } from '../../../../engine/directory/weight-blocks.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import type { TensorType } from '../../../../models/checkpoints/checkpoint.js';
import { fromHalf, GROUP, type QuantizedType, valuesOf } from '../../../../tools/support/quantized.js';
import { Random } from '../../../../tools/support/random.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';

const { convert } = loadAddon();
const directory = temporaryFolder('skein-quantize');

interface Matrix {
  type: TensorType;
  bytes: Uint8Array;
  rows: number;
  columns: number;
}

function converted(
  { type, bytes, rows, columns }: Matrix,
  targetType: QuantizedType,
  change: Partial<ConvertJob> = {},
): Buffer {
  const source = join(directory, 'source.bin');
  const target = join(directory, 'target.bin');
  writeFileSync(source, bytes);
  writeFileSync(target, Buffer.alloc(storedBytes(targetType, rows, columns)));
  const place = { source, sourceOffset: 0, sourceByteLength: bytes.length, targetOffset: 0 };
  convert(target, [{ ...place, type, rows, columns, interleavedHeads: 0, targetType, ...change }], 2);
  return readFileSync(target);
}

const floats = (values: number[], rows: number): Matrix => ({
  type: 'F32',
  bytes: new Uint8Array(Float32Array.from(values).buffer),
  rows,
  columns: values.length / rows,
});

interface Fixture {
  type: TensorType;
  rows: number;
  columns: number;
  raw: string;
  f32: string;
}
const fixtures = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../../fixtures/ggml-types.json', import.meta.url)), 'utf8'),
) as Fixture[];

describe('a checkpoint that is quantised already', () => {
  it.each<[TensorType, QuantizedType]>([
    ['Q8_0', 'int8'],
    ['Q4_0', 'int8'],
    ['Q5_0', 'int8'],
    ['Q4_0', 'int4'],
    ['Q4_1', 'int4'],
    ['Q4_K', 'q4_k'],
    ['Q5_K', 'q5_k'],
    ['Q6_K', 'q6_k'],
    ['Q3_K', 'q6_k'],
    ['Q5_0', 'q5_0'],
    ['Q5_1', 'q5_1'],
    ['IQ4_NL', 'iq4_nl'],
    ['IQ4_XS', 'iq4_xs'],
    ['MXFP4', 'mxfp4'],
    ['TQ1_0', 'int4'],
    ['TQ2_0', 'int4'],
  ])('%s becomes %s without loss', (type, target) => {
    const { rows, columns, raw, f32 } = fixtures.find((fixture) => fixture.type === type)!;
    const stored = converted({ type, rows, columns, bytes: Buffer.from(raw, 'base64') }, target);
    const found = Float32Array.from(valuesOf(target, stored, rows, columns));
    const bytes = Buffer.from(f32, 'base64');
    const expected = new Float32Array(bytes.buffer, bytes.byteOffset, rows * columns);
    expect(found.every((value, i) => value === expected[i])).toBe(true);
  });

  it.each<[TensorType, QuantizedType]>([
    ['Q4_K', 'q6_k'],
    ['Q5_0', 'q5_1'],
    ['Q4_0', 'iq4_nl'],
  ])('%s is never stored as %s', (type, target) => {
    const { rows, columns, raw } = fixtures.find((fixture) => fixture.type === type)!;
    const bytes = Buffer.from(raw, 'base64');
    expect(() => converted({ type, rows, columns, bytes }, target)).toThrow(
      `a tensor of type ${type} cannot be stored as ${target}, a format that only keeps numbers which a file has in it.`,
    );
  });

  it('keeps the order of heads that llama.cpp interleaved', () => {
    const fixture = fixtures.find(({ type }) => type === 'Q4_1')!;
    const { type, columns, raw } = fixture;
    const two = Buffer.from(raw, 'base64');
    const rowBytes = two.length / 2;
    const row = (i: number) => two.subarray(i * rowBytes, (i + 1) * rowBytes);
    // The only head has four rows in pairs, stored in the order 0 2 1 3.
    const bytes = Buffer.concat([row(0), row(1), row(1), row(0)]);
    const stored = converted({ type, rows: 4, columns, bytes }, 'int4', { interleavedHeads: 1 });
    expect(stored.equals(Buffer.concat([row(0), row(1), row(1), row(0)]))).toBe(true);
    const other = Buffer.concat([row(0), row(1), row(0), row(1)]);
    expect(
      converted({ type, rows: 4, columns, bytes: other }, 'int4', { interleavedHeads: 1 }).equals(
        Buffer.concat([row(0), row(0), row(1), row(1)]),
      ),
    ).toBe(true);
  });
});

describe('float32 weights', () => {
  const random = new Random(5);
  const [rows, columns] = [7, 150];
  const values = Array.from({ length: rows * columns }, () => random.normal() * 0.05);

  it('are within half a step of int8', () => {
    const stored = converted(floats(values, rows), 'int8');
    const found = valuesOf('int8', stored, rows, columns);
    for (let row = 0; row < rows; row++)
      for (let first = 0; first < columns; first += GROUP) {
        const at = row * columns + first;
        const group = values.slice(at, at + Math.min(GROUP, columns - first));
        // The scale itself is rounded to 11 bits.
        const step = (Math.max(...group.map(Math.abs)) / 127) * (1 + 2 ** -10);
        for (const [i, value] of group.entries())
          expect(Math.abs(found[at + i]! - value)).toBeLessThanOrEqual(step * 0.56);
      }
  });

  it('are as near to int4 as a straight rounding of each group from least to greatest, or nearer', () => {
    const stored = converted(floats(values, rows), 'int4');
    const found = valuesOf('int4', stored, rows, columns);
    let total = 0;
    let plainTotal = 0;
    for (let row = 0; row < rows; row++)
      for (let first = 0; first < columns; first += GROUP) {
        const at = row * columns + first;
        const group = values.slice(at, at + Math.min(GROUP, columns - first));
        const least = Math.min(...group);
        const step = (Math.max(...group) - least) / 15;
        const usual = Math.sqrt(group.reduce((sum, x) => sum + x * x, 0) / group.length);
        // Great weights count more.
        const error = (f: (x: number, i: number) => number) =>
          group.reduce((sum, x, i) => sum + (usual + Math.abs(x)) * (f(x, i) - x) ** 2, 0);
        const ours = error((_, i) => found[at + i]!);
        const plain = error((x) => least + step * Math.round((x - least) / step));
        expect(ours).toBeLessThanOrEqual(plain * 1.02);
        total += ours;
        plainTotal += plain;
      }
    expect(total).toBeLessThan(plainTotal * 0.95);
  });

  it('are in int4 as near as the best of a fine search over scales and minima, but for a tenth', () => {
    const stored = converted(floats(values, rows), 'int4');
    const found = valuesOf('int4', stored, rows, columns);
    const group = values.slice(0, GROUP);
    const usual = Math.sqrt(group.reduce((sum, x) => sum + x * x, 0) / GROUP);
    const error = (f: (x: number, i: number) => number) =>
      group.reduce((sum, x, i) => sum + (usual + Math.abs(x)) * (f(x, i) - x) ** 2, 0);
    const [least, greatest] = [Math.min(...group), Math.max(...group)];
    const range = greatest - least;
    let best = Number.POSITIVE_INFINITY;
    for (let steps = 12; steps < 20; steps += 0.05)
      for (let shift = -0.1; shift < 0.1; shift += 0.005) {
        const [scale, minimum] = [range / steps, least + shift * range];
        const quant = (x: number) => Math.min(15, Math.max(0, Math.round((x - minimum) / scale)));
        best = Math.min(
          best,
          error((x) => minimum + scale * quant(x)),
        );
      }
    expect(error((_, i) => found[i]!)).toBeLessThan(1.1 * best);
  });

  it.each(['int8', 'int4'] as const)('keep the values that %s can hold', (type) => {
    const steps = Array.from({ length: 64 }, (_, i) => (type === 'int8' ? (i % 32) * 8 - 127 : i % 16));
    const exact = steps.map((step) => (type === 'int8' ? step * 2 ** -9 : step * 2 ** -6 - 0.25));
    const stored = converted(floats(exact, 1), type);
    expect([...valuesOf(type, stored, 1, 64)]).toEqual(exact);
  });

  it.each(['int8', 'int4'] as const)('of any size survive in %s: zeros, tiny ones, large ones', (type) => {
    for (const size of [0, 1e-30, 3e-7, 2e-6, 1e-3, 1, 3e4]) {
      const group = Array.from({ length: 32 }, (_, i) => size * Math.sin(i));
      const found = valuesOf(type, converted(floats(group, 1), type), 1, 32);
      const tolerance = type === 'int8' ? 0.01 : 0.1;
      for (const [i, value] of group.entries())
        expect(Math.abs(found[i]! - value)).toBeLessThanOrEqual(tolerance * size + 2 ** -24 * 20);
    }
  });

  it.each(['int8', 'int4'] as const)('that are NaN or infinite make their group NaN in %s', (type) => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const group = Array.from({ length: 96 }, (_, i) => (i === 40 ? bad : i / 96));
      const found = valuesOf(type, converted(floats(group, 1), type), 1, 96);
      for (const [i, value] of found.entries()) expect(Number.isNaN(value)).toBe(i >= 32 && i < 64);
    }
  });

  it('fill up a row that is no whole number of groups', () => {
    for (const type of ['int8', 'int4'] as const) {
      const stored = converted(floats([1, 2, 3], 1), type);
      expect(stored.length).toBe(storedBytes(type, 1, 3));
      const found = valuesOf(type, stored, 1, 3);
      for (const [i, value] of [1, 2, 3].entries()) expect(Math.abs(found[i]! - value)).toBeLessThan(0.07);
      expect(Number.isFinite(fromHalf(stored.readUInt16LE(0)))).toBe(true);
    }
  });
});
