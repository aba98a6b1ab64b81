import { describe, expect, it } from 'vitest';
import type { KvDtype } from '../../../../../kvcache/cache-shape.js';
import { draws } from '../../../../support/scale.js';
import { type Expected, expectedHead, expectNear, joined, queriesOf } from './attention-reference.js';
import {
  attentionTables,
  expectSameBits,
  guarded,
  isEmulated,
  kernels,
  randomFloats,
  randomOf,
  twins,
} from './kernel-hooks.js';
import { blockElements, inCache, KV_DTYPES, type Pool, poisonedPool, zeroBlock } from './kv-pool.js';

interface Shape {
  dtype: KvDtype;
  tokens: number;
  tokensPerBlock: number;
  kvHeads: number;
  /** Query heads per KV head. */
  group: number;
  headDim: number;
  /** Tokens that a row attends to, sinks included; 0: all of them, without a window. */
  window: number;
  sinks: number;
}

type Chunk = [begin: number, end: number];

/** The geometry that the executor derives from a window. */
function ringOf({ window, sinks, tokensPerBlock, tokens }: Shape) {
  if (window === 0) {
    return { recent: 0, sinks: 0, sinkBlocks: 0, ringBlocks: Math.ceil(tokens / tokensPerBlock) };
  }
  const sinkBlocks = Math.ceil(sinks / tokensPerBlock);
  return {
    recent: window - sinks,
    sinks,
    sinkBlocks,
    ringBlocks: Math.ceil((window - sinks) / tokensPerBlock),
  };
}

/**
 * A sequence whose keys and values go through a cyclic cache chunk by chunk, as the executor does it: where a chunk
 * would write over what its rows read, it is read from blocks of its own, and the cache is written after it.
 */
class WindowedSequence {
  readonly #table: string;
  readonly #shape: Shape;
  readonly #ring: ReturnType<typeof ringOf>;
  readonly #q: Float32Array;
  /** The query that counts for the sinks. */
  readonly #sinkQ: Float32Array;
  readonly #k: Float32Array;
  readonly #v: Float32Array;
  #rounded: Record<'keys' | 'values' | 'q' | 'sinkQ', Float32Array> | null = null;

  constructor(table: string, shape: Shape, seed = 1) {
    this.#table = table;
    this.#shape = shape;
    this.#ring = ringOf(shape);
    const { tokens, kvHeads, group, headDim } = shape;
    this.#q = randomFloats(tokens * kvHeads * group * headDim, seed).map((x) => 3 * x);
    // Up to the window a row's position in the cache is its own, so its two queries are the same.
    this.#sinkQ = randomFloats(this.#q.length, seed + 3).map((x) => 3 * x);
    this.#sinkQ.set(this.#q.subarray(0, shape.window * kvHeads * group * headDim));
    this.#k = randomFloats(tokens * kvHeads * headDim, seed + 1);
    this.#v = randomFloats(tokens * kvHeads * headDim, seed + 2);
  }

  /** The rows of all positions, computed in these chunks. `alwaysFresh`: also chunks that write over nothing. */
  run(chunks: readonly Chunk[], alwaysFresh = false): Float32Array[] {
    const { sinkBlocks, ringBlocks, recent } = this.#ring;
    const { tokensPerBlock: size, window } = this.#shape;
    const entries = sinkBlocks + ringBlocks;
    const cache = poisonedPool(this.#shape, 2 * entries + 1);
    const blockTable = Int32Array.from({ length: entries }, (_, i) => 2 * (entries - 1 - i) + 1);
    for (const block of blockTable) zeroBlock(cache, this.#shape, block);
    const slotOf = (position: number) => {
      const block = Math.floor(position / size);
      const entry = block < sinkBlocks ? block : sinkBlocks + ((block - sinkBlocks) % ringBlocks);
      return blockTable[entry]! * size + (position % size);
    };
    const rows: Float32Array[] = [];
    for (const [begin, end] of chunks) {
      const overwrites = end > entries * size && end - begin > ringBlocks * size - recent + 1;
      const store = () => {
        for (let t = begin; t < end; t++) {
          const isLast = Math.floor(t / size) < sinkBlocks || t + ringBlocks * size >= end;
          if (isLast) this.#store(cache, slotOf(t), t);
        }
      };
      if (window === 0 || !(overwrites || alwaysFresh)) {
        store();
        rows.push(...this.#attend(cache, blockTable, begin, end, null, 0));
        continue;
      }
      const freshBlock = Math.floor(begin / size);
      const fresh = poisonedPool(this.#shape, Math.ceil(end / size) - freshBlock);
      zeroBlock(fresh, this.#shape, Math.ceil(end / size) - freshBlock - 1);
      if (begin % size !== 0) {
        const elements = blockElements(this.#shape);
        const from = Math.floor(slotOf(begin) / size) * elements;
        fresh.set(cache.subarray(from, from + elements));
      }
      for (let t = begin; t < end; t++) this.#store(fresh, t - freshBlock * size, t);
      rows.push(...this.#attend(cache, blockTable, begin, end, fresh, freshBlock));
      store();
    }
    return rows;
  }

  /** The numbers that the kernels multiply, rounded as they round them. */
  get #asMultiplied(): Record<'keys' | 'values' | 'q' | 'sinkQ', Float32Array> {
    const { dtype, headDim } = this.#shape;
    this.#rounded ??= {
      keys: inCache('keys', dtype, this.#k, headDim),
      values: inCache('values', dtype, this.#v, headDim),
      q: queriesOf(this.#table, dtype, this.#q, headDim),
      sinkQ: queriesOf(this.#table, dtype, this.#sinkQ, headDim),
    };
    return this.#rounded;
  }

  /** In double precision over the exact values that the cache holds, with the mask written out. */
  expected(position: number): Expected {
    const { dtype, kvHeads, group, headDim, window, sinks } = this.#shape;
    const { keys, values, q, sinkQ } = this.#asMultiplied;
    const seen = Array.from({ length: position + 1 }, (_, t) => t).filter(
      (t) => window === 0 || t < sinks || position - t < window - sinks,
    );
    const table = this.#table;
    const heads = Array.from({ length: kvHeads * group }, (_, head) => {
      const at = Math.floor(head / group) * headDim;
      const query = (position * kvHeads * group + head) * headDim;
      const scores = seen.map((t) => {
        let sum = 0;
        const ofToken = t < sinks ? sinkQ : q;
        for (let d = 0; d < headDim; d++) sum += ofToken[query + d]! * keys[t * kvHeads * headDim + at + d]!;
        return sum / Math.sqrt(headDim);
      });
      const value = (i: number, d: number) => values[seen[i]! * kvHeads * headDim + at + d]!;
      return expectedHead({ table, dtype, scores, headDim, value });
    });
    return joined(heads);
  }

  #attend(
    cache: Pool,
    blockTable: Int32Array,
    begin: number,
    end: number,
    fresh: Pool | null,
    freshBlock: number,
  ): Float32Array[] {
    const { dtype, tokensPerBlock, kvHeads, group, headDim } = this.#shape;
    const stride = kvHeads * group * headDim;
    const rows = end - begin;
    const queries = guarded(rows, stride, stride, this.#q.subarray(begin * stride, end * stride));
    const y = guarded(1, rows * stride, rows * stride);
    const used = Math.ceil(end / tokensPerBlock);
    kernels.attention(this.#table, {
      ...this.#ring,
      dtype,
      cache,
      tokensPerBlock,
      kvHeads,
      headDim,
      // Entries that the sequence has not reached are far outside of the pool.
      blockTable: blockTable.map((block, i) => (i < used ? block : 1 << 24)),
      q: queries.view,
      ldq: stride,
      numHeads: kvHeads * group,
      firstPosition: begin,
      scale: 1 / Math.sqrt(headDim),
      rowBegin: 0,
      rowEnd: rows,
      fresh,
      freshBlock,
      ...(this.#shape.sinks > 0 ? { sinkQ: this.#sinkQ.slice(begin * stride, end * stride) } : {}),
      y: y.view,
    });
    expect(y.guardsIntact()).toBe(true);
    return Array.from({ length: rows }, (_, r) => y.view.slice(r * stride, (r + 1) * stride));
  }

  #store(cache: Pool, slot: number, t: number): void {
    const { dtype, tokensPerBlock, kvHeads, headDim } = this.#shape;
    const row = (x: Float32Array) => x.subarray(t * kvHeads * headDim, (t + 1) * kvHeads * headDim);
    const k = row(this.#k);
    const v = row(this.#v);
    kernels.storeKv(this.#table, { dtype, cache, tokensPerBlock, kvHeads, headDim, slot, k, v });
  }
}

const oneByOne = (tokens: number): Chunk[] => Array.from({ length: tokens }, (_, t) => [t, t + 1]);

const below = (random: () => number, n: number) => Math.floor(((random() + 1) / 2) * n);

function randomChunks(tokens: number, random: () => number): Chunk[] {
  const chunks: Chunk[] = [];
  for (let begin = 0; begin < tokens; ) {
    const end = Math.min(tokens, begin + 1 + below(random, below(random, 2) ? 3 : 120));
    chunks.push([begin, end]);
    begin = end;
  }
  return chunks;
}

/** Windows of one token, inside a block, of whole blocks, of many, longer than the sequence; sinks likewise. */
const WINDOWS = [
  [1, 0],
  [2, 1],
  [7, 0],
  [20, 4],
  [32, 0],
  [33, 0],
  [40, 32],
  [61, 33],
  [64, 8],
  [100, 3],
  [500, 0],
  [500, 10],
] as const;

const LAYOUTS = [
  ['f32', 1, 8],
  ['bf16', 3, 16],
  ['f32', 4, 32],
  ['bf16', 1, 64],
  ['int8', 3, 16],
  ['int8', 1, 32],
] as const;

/** Each window in two layouts, one with a cache of single numbers and one of another: every layout meets four windows. */
const WINDOWS_IN_LAYOUTS = WINDOWS.flatMap(([window, sinks], i) =>
  [i, i + 3].map((layout) => [window, sinks, ...LAYOUTS[layout % LAYOUTS.length]!] as const),
);

describe.each(attentionTables)('attention in a window, %s', (table) => {
  it('agrees with a double precision softmax over the tokens in the window', () => {
    for (const [window, sinks, dtype, group, tokensPerBlock] of WINDOWS_IN_LAYOUTS) {
      const headDim = dtype === 'f32' ? 24 : 16;
      const shape = { dtype, tokens: 150, tokensPerBlock, kvHeads: 2, group, headDim, window, sinks };
      const sequence = new WindowedSequence(table, shape);
      const rows = sequence.run(oneByOne(150));
      for (const position of [0, 1, 7, 31, 32, 33, 63, 64, 100, 149])
        expectNear(
          rows[position]!,
          sequence.expected(position),
          `position ${position} of ${JSON.stringify(shape)}`,
        );
    }
  });

  it('gives a token in any chunk the bits of its generation step', () => {
    const random = randomOf(17);
    // Each window once, in layouts and chunks drawn for it.
    const trials = draws(WINDOWS.length);
    for (let trial = 0; trial < trials; trial++) {
      const [window, sinks] = WINDOWS[trial % WINDOWS.length]!;
      const tokens = 30 + below(random, isEmulated(table) ? 150 : 300);
      const shape: Shape = {
        dtype: KV_DTYPES[below(random, 3)]!,
        tokens,
        tokensPerBlock: 8 << below(random, 5),
        kvHeads: 1 + below(random, 2),
        group: [1, 3, 4][below(random, 3)]!,
        headDim: [8, 16, 24, 64, 80][below(random, 5)]!,
        window,
        sinks,
      };
      const sequence = new WindowedSequence(table, shape, trial);
      const alone = sequence.run(oneByOne(tokens));
      for (const alwaysFresh of [false, true]) {
        const chunks = randomChunks(tokens, random);
        sequence.run(chunks, alwaysFresh).forEach((row, t) => {
          expectSameBits(row, alone[t]!, () => `position ${t} of ${JSON.stringify({ ...shape, chunks })}`);
        });
      }
    }
  });

  it('sees splits of the cache in order, whichever of them the window leaves out', () => {
    const tokens = 1600;
    const checked = [511, 512, 600, 699, 1023, 1024, 1111, 1535, tokens - 1];
    // Each of them by itself, and what lies between at once.
    const borders = [...new Set([0, ...checked.flatMap((position) => [position, position + 1])])];
    const singles = borders.slice(1).map((end, i): Chunk => [borders[i]!, end]);
    const windows = [
      [600, 0],
      [700, 530],
      [40, 0],
      [100, 4],
    ] as const;
    for (const [window, sinks] of isEmulated(table) ? windows.slice(0, 2) : windows) {
      const shape = { dtype: 'bf16', tokens, tokensPerBlock: 32, kvHeads: 1, group: 2, headDim: 8 } as const;
      const sequence = new WindowedSequence(table, { ...shape, window, sinks });
      const alone = sequence.run(singles);
      const chunked = sequence.run([
        [0, 700],
        [700, 1500],
        [1500, tokens],
      ]);
      for (const position of checked) {
        const place = `position ${position}, window ${window}, sinks ${sinks}`;
        expectSameBits(chunked[position]!, alone[position]!, () => place);
        expectNear(alone[position]!, sequence.expected(position), place);
      }
    }
  });

  it('gives the bits of no window as long as the sequence is not longer than it', () => {
    for (const [dtype, group, tokensPerBlock] of LAYOUTS) {
      const shape = { dtype, tokens: 90, tokensPerBlock, kvHeads: 2, group, headDim: 16 };
      const chunks: Chunk[] = [
        [0, 50],
        [50, 90],
      ];
      const plain = new WindowedSequence(table, { ...shape, window: 0, sinks: 0 }).run(chunks);
      for (const [window, sinks] of [
        [90, 0],
        [95, 40],
      ] as const) {
        const rows = new WindowedSequence(table, { ...shape, window, sinks }).run(chunks);
        for (const [t, row] of plain.entries())
          expectSameBits(rows[t]!, row, () => `position ${t} in a window of ${window} with ${sinks} sinks`);
      }
    }
  });
});

it.each(twins)('attention in a window, %s gives the bits of %s', (vector, scalar) => {
  for (const [window, sinks, dtype, group, tokensPerBlock] of WINDOWS_IN_LAYOUTS) {
    const shape = { dtype, tokens: 120, tokensPerBlock, kvHeads: 1, group, headDim: 40, window, sinks };
    const chunks: Chunk[] = [
      [0, 70],
      [70, 71],
      [71, 120],
    ];
    const wanted = new WindowedSequence(scalar, shape).run(chunks);
    const rows = new WindowedSequence(vector, shape).run(chunks);
    for (const [t, row] of rows.entries())
      expectSameBits(row, wanted[t]!, () => `position ${t} of ${JSON.stringify(shape)}`);
  }
});
