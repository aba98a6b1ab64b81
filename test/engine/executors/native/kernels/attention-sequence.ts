import { expect } from 'vitest';
import type { KvDtype } from '../../../../../kvcache/cache-shape.js';
import { type Expected, expectedHead, joined, queriesOf } from './attention-reference.js';
import { guarded, kernels, randomFloats } from './kernel-hooks.js';
import { inCache, poisonedPool, zeroBlock } from './kv-pool.js';

export interface Shape {
  dtype: KvDtype;
  tokens: number;
  tokensPerBlock: number;
  kvHeads: number;
  /** Query heads per KV head. */
  group: number;
  headDim: number;
  /** On the scores; absent: none. */
  softCap?: number;
}

/**
 * A pool whose blocks the sequence takes in a shuffled order. Its own blocks are zeroed before they are written, as the
 * executor does; all others, and the table's entries past the last block, are poison (NaN, a block far outside).
 */
function cacheOf(table: string, s: Shape, k: Float32Array, v: Float32Array) {
  const { tokensPerBlock, kvHeads, headDim, dtype } = s;
  const width = kvHeads * headDim;
  const blocks = Math.ceil(s.tokens / tokensPerBlock);
  const cache = poisonedPool(s, 2 * blocks + 1);
  // Every other block, from the last to the first: neighbours on both sides are of no sequence.
  const blockTable = Int32Array.from({ length: blocks }, (_, i) => 2 * (blocks - 1 - i) + 1);
  for (const block of blockTable) zeroBlock(cache, s, block);
  const layer = { dtype, cache, tokensPerBlock, kvHeads, headDim };
  for (let t = 0; t < s.tokens; t++) {
    const slot = blockTable[Math.floor(t / tokensPerBlock)]! * tokensPerBlock + (t % tokensPerBlock);
    const row = (x: Float32Array) => x.subarray(t * width, (t + 1) * width);
    kernels.storeKv(table, { ...layer, slot, k: row(k), v: row(v) });
  }
  return { layer, blockTable };
}

/** Attention of one position to the `seen` first ones over the exact values that the cache holds, in double precision: [numHeads * headDim]. */
function expectedRow(
  table: string,
  s: Shape,
  { q, keys, values }: Record<'q' | 'keys' | 'values', Float32Array>,
  position: number,
  seen = position + 1,
  first = 0,
): Expected {
  const width = s.kvHeads * s.headDim;
  const numHeads = s.kvHeads * s.group;
  const heads = Array.from({ length: numHeads }, (_, head) => {
    const at = Math.floor(head / s.group) * s.headDim;
    const query = (position * numHeads + head) * s.headDim;
    const scores = Array.from({ length: seen }, (_, t) => {
      if (t < first) return Number.NEGATIVE_INFINITY;
      let sum = 0;
      for (let d = 0; d < s.headDim; d++) sum += q[query + d]! * keys[t * width + at + d]!;
      const score = sum / Math.sqrt(s.headDim);
      return s.softCap === undefined ? score : s.softCap * Math.tanh(score / s.softCap);
    });
    const { dtype, headDim } = s;
    return expectedHead({ table, dtype, scores, headDim, value: (t, d) => values[t * width + at + d]! });
  });
  return joined(heads);
}

/** A sequence of random queries, keys and values, whose attention `run` computes by the kernels of a table. */
export function sequenceOf(
  table: string,
  s: Shape,
  seed = 1,
  changeKeys: (k: Float32Array) => void = () => {},
  changeValues: (v: Float32Array) => void = () => {},
) {
  const numHeads = s.kvHeads * s.group;
  const stride = numHeads * s.headDim;
  const q = randomFloats(s.tokens * stride, seed).map((x) => 3 * x);
  const k = randomFloats(s.tokens * s.kvHeads * s.headDim, seed + 1);
  const v = randomFloats(s.tokens * s.kvHeads * s.headDim, seed + 2);
  changeKeys(k);
  changeValues(v);
  const { layer, blockTable } = cacheOf(table, s, k, v);
  /** Calls the kernel once for the chunk of positions [begin, end), for its rows [rowBegin, rowEnd); the `shared` first positions in calls before. */
  const run = (
    begin: number,
    end: number,
    ...[
      rowBegin = 0,
      rowEnd = end - begin,
      bothWays = 0,
      recent = 0,
      segment = 0,
      wholeAhead = 0,
      shared = 0,
    ]: number[]
  ) => {
    const rows = rowEnd - rowBegin;
    const queries = guarded(end - begin, stride, stride + 4, q.subarray(begin * stride, end * stride));
    const y = guarded(1, rows * stride, rows * stride);
    const needed = Math.ceil(Math.max(bothWays, begin + rowEnd) / s.tokensPerBlock);
    kernels.attention(table, {
      ...layer,
      blockTable: blockTable.map((block, i) => (i < needed ? block : 1 << 24)),
      q: queries.view,
      ldq: stride + 4,
      numHeads,
      firstPosition: begin,
      bothWays,
      begin: segment,
      wholeAhead,
      recent,
      ringBlocks: recent > 0 ? 2 ** 31 - 1 : 0,
      scale: 1 / Math.sqrt(s.headDim),
      softCap: s.softCap ?? 0,
      rowBegin,
      rowEnd,
      shared,
      y: y.view,
    });
    expect(y.guardsIntact()).toBe(true);
    return Array.from({ length: rows }, (_, r) => y.view.slice(r * stride, (r + 1) * stride));
  };
  let cached: Record<'q' | 'keys' | 'values', Float32Array> | null = null;
  const asMultiplied = () => {
    cached ??= {
      q: queriesOf(table, s.dtype, q, s.headDim),
      keys: inCache('keys', s.dtype, k, s.headDim),
      values: inCache('values', s.dtype, v, s.headDim),
    };
    return cached;
  };
  const expected = (position: number) => expectedRow(table, s, asMultiplied(), position);
  const expectedBothWays = (position: number, window = s.tokens, ahead = window) =>
    expectedRow(
      table,
      s,
      asMultiplied(),
      position,
      Math.min(s.tokens, position + ahead),
      Math.max(0, position - window + 1),
    );
  const expectedInSegment = (position: number, begin: number, end: number) =>
    expectedRow(table, s, asMultiplied(), position, end, begin);
  return { run, expected, expectedBothWays, expectedInSegment };
}
