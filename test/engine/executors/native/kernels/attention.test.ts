import { describe, expect, it } from 'vitest';
import { quantsOf, throughQuants, turned, turnedBack } from '../../../../support/kv-quants.js';
import { draws, isShort } from '../../../../support/scale.js';
import { expectNear } from './attention-reference.js';
import { type Shape, sequenceOf } from './attention-sequence.js';
import {
  attentionTables,
  bitsOf,
  expectSameBits,
  fromBf16,
  isEmulated,
  kernels,
  randomFloats,
  randomOf,
  toBf16,
  twins,
} from './kernel-hooks.js';
import { KV_DTYPES, poisonedPool } from './kv-pool.js';

const LAYOUTS = [
  ['f32', 1, 8],
  ['bf16', 3, 16],
  ['f32', 4, 32],
  ['bf16', 1, 64],
  ['bf16', 4, 128],
  ['int8', 3, 16],
  ['int8', 1, 32],
  ['int8', 7, 64],
] as const;

describe.each(attentionTables)('attention, %s', (table) => {
  const below = (random: () => number, n: number) => Math.floor(((random() + 1) / 2) * n);

  it('agrees with a double precision softmax for every head size, group and block size', () => {
    // Each head size in three layouts of other types, and each layout with three head sizes.
    for (const [i, headDim] of [1, 8, 9, 16, 40, 64, 80, 128].entries())
      for (const offset of [0, 3, 6]) {
        const [dtype, group, tokensPerBlock] = LAYOUTS[(i + offset) % LAYOUTS.length]!;
        const shape = { dtype, tokens: 70, tokensPerBlock, kvHeads: 2, group, headDim };
        const sequence = sequenceOf(table, shape);
        const rows = sequence.run(0, 70);
        for (const position of [0, 1, 31, 32, 33, 69])
          expectNear(rows[position]!, sequence.expected(position));
      }
  });

  it('caps scores softly before the softmax', () => {
    for (const [dtype, group, tokensPerBlock] of LAYOUTS) {
      const shape = { dtype, tokens: 70, tokensPerBlock, kvHeads: 2, group, headDim: 24 };
      const sequence = sequenceOf(table, { ...shape, softCap: 0.7 });
      const rows = sequence.run(0, 70);
      const uncapped = sequenceOf(table, shape).run(0, 70);
      for (const position of [0, 1, 31, 32, 33, 69]) {
        expectNear(rows[position]!, sequence.expected(position));
        if (position > 0) expect(rows[position]).not.toEqual(uncapped[position]);
      }
    }
  });

  it('gives a token in any chunk the bits of its generation step', () => {
    const random = randomOf(11);
    for (let trial = 0; trial < draws(isEmulated(table) ? 6 : 12); trial++) {
      const tokens = 1 + below(random, isEmulated(table) ? 120 : 300);
      const shape: Shape = {
        dtype: KV_DTYPES[below(random, 3)]!,
        tokens,
        tokensPerBlock: 8 << below(random, 5),
        kvHeads: 1 + below(random, 2),
        group: [1, 3, 4][below(random, 3)]!,
        headDim: [8, 16, 24, 64, 80, 128][below(random, 6)]!,
      };
      const sequence = sequenceOf(table, shape, trial);
      const alone = Array.from({ length: tokens }, (_, t) => sequence.run(t, t + 1)[0]!);
      for (let begin = 0; begin < tokens; ) {
        const end = Math.min(tokens, begin + 1 + below(random, 90));
        sequence.run(begin, end).forEach((row, r) => {
          expectSameBits(
            row,
            alone[begin + r]!,
            () => `position ${begin + r} in ${begin}..${end} of ${JSON.stringify(shape)}`,
          );
        });
        begin = end;
      }
    }
  });

  it.each(['bf16', 'int8'] as const)('gives the rows of any part of a chunk the same bits, %s', (dtype) => {
    const shape = {
      dtype,
      tokens: 75,
      tokensPerBlock: 16,
      kvHeads: 1,
      group: 3,
      headDim: 24,
    } as const;
    const sequence = sequenceOf(table, shape, 5);
    const whole = sequence.run(20, 75);
    for (let rowBegin = 0; rowBegin < 55; rowBegin += 6)
      for (const count of [1, 2, 5, 16, 40]) {
        const rowEnd = Math.min(55, rowBegin + count);
        sequence.run(20, 75, rowBegin, rowEnd).forEach((row, r) => {
          expectSameBits(row, whole[rowBegin + r]!, () => `row ${rowBegin + r} of ${rowBegin}..${rowEnd}`);
        });
      }
  });

  it('merges several splits of the cache to the same bits and the right values', () => {
    const tokens = isEmulated(table) ? 1100 : 1500;
    for (const [dtype, tokensPerBlock, headDim] of [
      ['bf16', 16, 16],
      ['f32', 64, 24],
      ['int8', 32, 32],
    ] as const) {
      const sequence = sequenceOf(table, { dtype, tokens, tokensPerBlock, kvHeads: 1, group: 3, headDim });
      const chunk = sequence.run(500, tokens);
      for (const position of [500, 511, 512, 513, 543, 544, 1023, 1024, tokens - 1]) {
        const alone = sequence.run(position, position + 1)[0]!;
        expectSameBits(chunk[position - 500]!, alone, () => `position ${position}`);
        expectNear(alone, sequence.expected(position));
      }
    }
  });

  it('attends both ways to whole sequences, with the same bits for any part of their rows', () => {
    for (const [dtype, tokensPerBlock, headDim, tokens] of [
      ['f32', 32, 32, 1],
      ['f32', 32, 10, 33],
      ['f32', 32, 16, 64],
      ['bf16', 16, 64, 90],
      ['int8', 32, 64, 90],
      ['f32', 32, 24, isEmulated(table) ? 530 : 1100],
    ] as const) {
      const sequence = sequenceOf(table, { dtype, tokens, tokensPerBlock, kvHeads: 2, group: 1, headDim });
      const whole = sequence.run(0, tokens, 0, tokens, tokens);
      for (const position of [0, 1, 31, 32, 511, 512, tokens - 1].filter((one) => one < tokens)) {
        expectNear(whole[position]!, sequence.expectedBothWays(position));
      }
      for (let begin = 0; begin < tokens; begin += 37) {
        const end = Math.min(tokens, begin + 16);
        sequence.run(0, tokens, begin, end, tokens).forEach((row, r) => {
          expectSameBits(row, whole[begin + r]!, () => `row ${begin + r} of ${tokens}`);
        });
      }
    }
  });

  it('sees as far ahead as back in a window both ways, with the same bits for any rows', () => {
    for (const [dtype, tokens, tokensPerBlock, headDim, window] of [
      ['f32', 70, 32, 40, 1],
      ['f32', 600, 32, 64, 65],
      ['bf16', 90, 16, 32, 33],
      ['f32', 545, 8, 10, 500],
      ['int8', 600, 64, 64, 32],
      ['f32', 33, 32, 16, 100],
    ] as const) {
      const sequence = sequenceOf(table, { dtype, tokens, tokensPerBlock, kvHeads: 2, group: 2, headDim });
      const whole = sequence.run(0, tokens, 0, tokens, tokens, window);
      for (const position of [0, 1, 31, 32, 64, 511, 512, tokens - 1].filter((one) => one < tokens)) {
        expectNear(whole[position]!, sequence.expectedBothWays(position, window));
      }
      for (let begin = 0; begin < tokens; begin += 37) {
        const end = Math.min(tokens, begin + 16);
        sequence.run(0, tokens, begin, end, tokens, window).forEach((row, r) => {
          expectSameBits(row, whole[begin + r]!, () => `row ${begin + r} of ${tokens}`);
        });
      }
      // Rows of a picture, which see all of it: the window counts only what lies before them.
      const seen = sequence.run(0, tokens, 0, tokens, tokens, window, 0, 1);
      for (const position of [0, 1, 31, 32, 64, 511, 512, tokens - 1].filter((one) => one < tokens))
        expectNear(seen[position]!, sequence.expectedBothWays(position, window, tokens));
      const some = sequence.run(0, tokens, 7, 23, tokens, window, 0, 1);
      for (const [r, row] of some.entries())
        expectSameBits(row, seen[7 + r]!, () => `row ${7 + r} of ${tokens}`);
    }
  });

  it('sees a segment of a sequence alone, with the same bits for any of its rows', () => {
    for (const [dtype, tokens, tokensPerBlock, headDim, begin, end] of [
      ['f32', 70, 32, 40, 0, 16],
      ['f32', 90, 32, 80, 5, 69],
      ['f32', 600, 32, 24, 500, 564],
      ['bf16', 90, 16, 64, 31, 33],
      ['f32', 560, 32, 16, 530, 560],
      ['int8', 90, 32, 64, 64, 90],
    ] as const) {
      const sequence = sequenceOf(table, { dtype, tokens, tokensPerBlock, kvHeads: 2, group: 1, headDim });
      const rows = sequence.run(0, tokens, begin, end, end, 0, begin);
      for (const position of [begin, begin + 1, end - 1])
        expectNear(rows[position - begin]!, sequence.expectedInSegment(position, begin, end));
      for (let first = begin; first < end; first += 11) {
        const last = Math.min(end, first + 9);
        sequence.run(0, tokens, first, last, end, 0, begin).forEach((row, r) => {
          expectSameBits(row, rows[first - begin + r]!, () => `row ${first + r} of ${begin}..${end}`);
        });
      }
    }
  });

  it('gives the same bits whatever the block size', () => {
    for (const dtype of KV_DTYPES) {
      const shape = { dtype, tokens: 100, kvHeads: 2, group: 3, headDim: 64 };
      const [first, ...others] = [8, 16, 32, 64, 128].map((tokensPerBlock) =>
        Buffer.concat(
          sequenceOf(table, { ...shape, tokensPerBlock })
            .run(0, 100)
            .map(bitsOf),
        ),
      );
      for (const other of others) expect(other.equals(first!)).toBe(true);
    }
  });

  it('writes a token into its slot, K transposed by groups and V row by row, and nothing else', () => {
    for (const [dtype, , tokensPerBlock] of LAYOUTS.filter(([type]) => type !== 'int8')) {
      const [kvHeads, headDim] = [3, 24];
      const width = kvHeads * headDim;
      const [k, v] = [randomFloats(width, 3), randomFloats(width, 4)];
      const cache =
        dtype === 'f32'
          ? new Float32Array(3 * 2 * width * tokensPerBlock).fill(Number.NaN)
          : new Uint16Array(3 * 2 * width * tokensPerBlock).fill(0x7fc0);
      const wanted = cache.slice();
      const group = Math.min(32, tokensPerBlock);
      for (const offset of [0, 5, tokensPerBlock - 1]) {
        const slot = tokensPerBlock + offset;
        kernels.storeKv(table, { dtype, cache, tokensPerBlock, kvHeads, headDim, slot, k, v });
        const [storedK, storedV] = dtype === 'f32' ? [k, v] : [toBf16(k), toBf16(v)];
        for (let head = 0; head < kvHeads; head++)
          for (let d = 0; d < headDim; d++) {
            const base = (kvHeads + head) * 2 * tokensPerBlock * headDim;
            const inGroup = (Math.floor(offset / group) * headDim + d) * group + (offset % group);
            wanted[base + inGroup] = storedK[head * headDim + d]!;
            wanted[base + (tokensPerBlock + offset) * headDim + d] = storedV[head * headDim + d]!;
          }
      }
      expect(Buffer.from(cache.buffer).equals(Buffer.from(wanted.buffer))).toBe(true);
    }
  });

  it('writes quants of a token into its slot, each number beside its neighbour in a row, and the scales behind them', () => {
    for (const [tokensPerBlock, headDim] of [
      [8, 24],
      [32, 9],
      [64, 16],
    ] as const) {
      const kvHeads = 2;
      const [k, v] = [randomFloats(kvHeads * headDim, 3), randomFloats(kvHeads * headDim, 4)];
      const shape = { dtype: 'int8', tokensPerBlock, kvHeads, headDim } as const;
      const cache = poisonedPool(shape, 3);
      const wanted = new DataView(cache.slice().buffer);
      const keyBytes = 2 * Math.ceil(headDim / 2);
      const headBytes = tokensPerBlock * (keyBytes + headDim + 8);
      const group = Math.min(32, tokensPerBlock);
      for (const offset of [0, 5, tokensPerBlock - 1]) {
        kernels.storeKv(table, { ...shape, cache, slot: tokensPerBlock + offset, k, v });
        for (let head = 0; head < kvHeads; head++) {
          const base = (kvHeads + head) * headBytes;
          const scales = base + tokensPerBlock * (keyBytes + headDim);
          const ofHead = (x: Float32Array) => x.subarray(head * headDim, (head + 1) * headDim);
          const [keys, values] = [quantsOf(turned(ofHead(k)), 127), quantsOf(ofHead(v), 127)];
          for (let d = 0; d < headDim; d++) {
            const inGroup =
              ((Math.floor(offset / group) * Math.ceil(headDim / 2) + (d >> 1)) * group + (offset % group)) *
              2;
            wanted.setInt8(base + inGroup + (d % 2), keys.quants[d]!);
            const ofValue = ((offset >> 1) * headDim + d) * 2 + (offset % 2);
            wanted.setInt8(base + tokensPerBlock * keyBytes + ofValue, values.quants[d]!);
          }
          wanted.setFloat32(scales + 4 * offset, keys.scale, true);
          wanted.setFloat32(scales + 4 * (tokensPerBlock + offset), values.scale, true);
        }
      }
      expect(Buffer.from(cache.buffer).equals(Buffer.from(wanted.buffer))).toBe(true);
    }
  });

  it('turns keys and queries so that their product stays, and a great number of a key costs the others few bits', () => {
    for (const headDim of [1, 9, 24, 64, 80, 96, 128, 256]) {
      const [q, k] = [randomFloats(headDim, 3), randomFloats(headDim, 4)];
      const product = (a: ArrayLike<number>, b: ArrayLike<number>) =>
        Array.from(a).reduce((sum, x, i) => sum + x * b[i]!, 0);
      const together = headDim & -headDim;
      expect(product(turned(q), turned(k)) / together).toBeCloseTo(product(q, k), 5);
      turnedBack(turned(k)).forEach((x, i) => {
        expect(x).toBeCloseTo(k[i]!, 6);
      });
    }
    const key = randomFloats(64, 5);
    key[17] = 50;
    const worst = (isTurned: boolean) =>
      Math.max(...throughQuants(key, 127, isTurned).map((x, i) => (i === 17 ? 0 : Math.abs(x - key[i]!))));
    expect(worst(true)).toBeLessThan(worst(false) / 2);
  });

  it('quantises the greatest magnitude to 127, rows of nothing to 0, and gives a row that is not finite a scale of NaN', () => {
    const shape = { dtype: 'int8', tokensPerBlock: 8, kvHeads: 1, headDim: 4 } as const;
    const stored = (row: readonly number[]) => {
      const cache = poisonedPool(shape, 1);
      const values = Float32Array.from(row);
      kernels.storeKv(table, { ...shape, cache, slot: 0, k: values, v: values });
      const view = new DataView(cache.buffer);
      const quants = [0, 1, 2, 3].map((d) => view.getInt8(32 + 2 * d));
      return { quants, scale: view.getFloat32(96, true), keyScale: view.getFloat32(64, true) };
    };
    const great = stored([3.4e38, -3.4e38, 1.7e38, 0]);
    expect(great.quants).toEqual([127, -127, 64, 0]);
    expect(great.scale).toBe(Math.fround(Math.fround(3.4e38) / 127));
    // Turned, the key is twice as great as numbers of 32 bits.
    expect(great.keyScale).toBeNaN();
    expect(stored([8e37, -8e37, 8e37, 0]).keyScale).toBe(
      Math.fround(Math.fround(3 * Math.fround(8e37)) / 127),
    );
    expect(stored([0.5, -127, 1.5, 2.5]).quants).toEqual([0, -127, 2, 2]);
    expect(stored([0, 0, -0, 0])).toEqual({ quants: [0, 0, 0, 0], scale: 0, keyScale: 0 });
    expect(stored([1e-38, -2e-38, 0, 1e-42])).toEqual({ quants: [0, 0, 0, 0], scale: 0, keyScale: 0 });
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const { scale, keyScale } = stored([1, bad, 3.4e38, -2]);
      expect([scale, keyScale]).toEqual([Number.NaN, Number.NaN]);
    }
  });

  it('makes NaN of the rows that see quants of what is not finite, and by its keys of no others', () => {
    for (const [headDim, tokensPerBlock] of [
      [16, 32],
      [9, 8],
    ] as const)
      for (const isKey of [true, false]) {
        const shape = { dtype: 'int8', tokens: 40, tokensPerBlock, kvHeads: 1, group: 3, headDim } as const;
        const poison = (x: Float32Array) => x.fill(Number.NaN, 33 * headDim + 2, 33 * headDim + 3);
        const whole = sequenceOf(table, shape, 1);
        const rows = sequenceOf(table, shape, 1, isKey ? poison : undefined, isKey ? undefined : poison);
        if (isKey) expect(rows.run(32, 33)).toEqual(whole.run(32, 33));
        for (const row of rows.run(33, 40)) expect(row.every(Number.isNaN)).toBe(true);
      }
  });

  it('rounds to the nearest bf16, ties to even, and keeps infinities and NaN', () => {
    const k = Float32Array.of(
      1.00390625,
      1.01171875,
      -1.0039064,
      3.4e38,
      Number.NEGATIVE_INFINITY,
      -0,
      1e-40,
      Number.NaN,
    );
    const cache = new Uint16Array(2 * 8 * 8);
    kernels.storeKv(table, {
      dtype: 'bf16',
      cache,
      tokensPerBlock: 8,
      kvHeads: 1,
      headDim: 8,
      slot: 0,
      k,
      v: k,
    });
    const v = cache.subarray(64, 72);
    expect([...v.subarray(0, 7)]).toEqual([0x3f80, 0x3f82, 0xbf81, 0x7f80, 0xff80, 0x8000, 0x0001]);
    expect(fromBf16(v)[7]).toBeNaN();
    for (let d = 0; d < 8; d++) expect(cache[d * 8]).toBe(v[d]);
  });
});

it.each(twins)('attention, %s gives the bits of %s', (vector, scalar) => {
  const tokens = isShort ? 40 : 90;
  for (const headDim of isShort ? [40] : [5, 8, 24, 40, 64, 80, 128])
    for (const [dtype, group, tokensPerBlock] of LAYOUTS) {
      const plain: Shape = { dtype, tokens, tokensPerBlock, kvHeads: 2, group, headDim };
      for (const shape of headDim === 40 ? [plain, { ...plain, softCap: 2 }] : [plain]) {
        const wanted = sequenceOf(scalar, shape).run(0, tokens);
        const rows = sequenceOf(vector, shape).run(0, tokens);
        for (const [i, row] of rows.entries())
          expectSameBits(row, wanted[i]!, () => `position ${i} of ${JSON.stringify(shape)}`);
      }
    }
});
