import { expect } from 'vitest';
import type { KvDtype } from '../../../../../kvcache/cache-shape.js';
import { fromBf16, multipliesPairs, toBf16 } from './kernel-hooks.js';
import { asQuants } from './kv-pool.js';

/** Greatest whole number of a query or of a step's probabilities that meets a cache in int8. */
const WORDS = 32767;

/** True for kernels that multiply a bf16 cache as pairs of bf16, and so round queries and probabilities. */
const inPairs = (table: string, dtype: KvDtype) => dtype === 'bf16' && multipliesPairs(table);

/** The queries that the scores are products of. */
export function queriesOf(table: string, dtype: KvDtype, q: Float32Array, headDim: number): Float32Array {
  if (dtype === 'int8') return asQuants(q, headDim, WORDS, true);
  return inPairs(table, dtype) ? fromBf16(toBf16(q)) : q;
}

export interface HeadReference {
  table: string;
  dtype: KvDtype;
  /** Before the softmax, one for each token that the row sees. */
  scores: readonly number[];
  headDim: number;
  /** Value d of the token whose score is scores[i]. */
  value(i: number, d: number): number;
}

/** Outputs in double precision, and how far off each may be. */
export interface Expected {
  values: number[];
  tolerances: number[];
}

/**
 * Output of one head for one row, with its tolerances. A probability that is rounded to bf16 is off by up to 2^-9 of
 * itself, each in its own direction; one that is rounded to 16 bits, times its values' scale, by up to 2^-16 of the
 * greatest. The error of a sum of them stays within six standard deviations. Values are up to 1.
 */
export function expectedHead({ table, dtype, scores, headDim, value }: HeadReference): Expected {
  const greatest = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - greatest));
  const total = weights.reduce((a, b) => a + b, 0);
  const step = inPairs(table, dtype) ? 2 ** -9 / Math.sqrt(3) : 0;
  const equal = dtype === 'int8' ? ((2 ** -16 / Math.sqrt(3)) * Math.sqrt(weights.length)) / total : 0;
  const columns = Array.from({ length: headDim }, (_, d) => weights.map((w, i) => (w * value(i, d)) / total));
  return {
    values: columns.map((parts) => parts.reduce((a, b) => a + b, 0)),
    tolerances: columns.map(
      (parts) => 5e-6 + 6 * (equal + step * Math.sqrt(parts.reduce((a, b) => a + b * b, 0))),
    ),
  };
}

/** Heads one after the other. */
export function joined(heads: readonly Expected[]): Expected {
  return {
    values: heads.flatMap(({ values }) => values),
    tolerances: heads.flatMap(({ tolerances }) => tolerances),
  };
}

export function expectNear(actual: Float32Array, wanted: Expected, place = ''): void {
  let worst = 0; // in tolerances
  wanted.values.forEach((x, i) => {
    const error = Math.abs(actual[i]! - x) / wanted.tolerances[i]!;
    if (!(error <= worst)) worst = error; // NaN counts
  });
  expect(worst, place).toBeLessThan(1);
}
