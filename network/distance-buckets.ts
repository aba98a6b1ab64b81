import type { DistanceBuckets } from './plan.js';

/** Most distances on one side that the buckets distinguish. */
export const MAX_DISTANCES = 2 ** 16;

const { fround } = Math;

/**
 * T5's buckets of distances (https://arxiv.org/abs/1910.10683), in the float32 of transformers: half of them for each direction, of which
 * one half is a distance each, and the others grow to `farthest`, beyond which all distances share the last.
 *
 * @param count a multiple of 4
 */
export function t5Buckets(count: number, farthest: number): DistanceBuckets {
  const half = count / 2;
  const exact = half / 2;
  const bucket = (distance: number) => {
    const apart = Math.abs(distance);
    const large = (fround(Math.log(fround(apart / exact))) / Math.log(farthest / exact)) * (half - exact);
    const own = apart < exact ? apart : Math.min(half - 1, exact + Math.trunc(fround(large)));
    return distance > 0 ? half + own : own;
  };
  return listed(count, farthest, bucket);
}

/**
 * DeBERTa's buckets of distances (https://arxiv.org/abs/2006.03654), in the float32 of transformers: row `span` is that of distance 0, rows
 * below it are those of keys after their query.
 *
 * @param buckets on each side: half of them are a distance each, the others grow to `farthest` - 1; null: each is one distance
 * @param farthest greatest distance with a row of its own, plus 1
 */
export function debertaBuckets(buckets: number | null, farthest: number): DistanceBuckets {
  const span = buckets ?? farthest;
  const middle = Math.floor(span / 2);
  const growth = fround(Math.log(fround((farthest - 1) / middle)));
  const grown = (apart: number) => {
    const share = fround(fround(Math.log(fround(apart / middle))) / growth);
    return Math.ceil(fround(share * (middle - 1))) + middle;
  };
  const bucket = (distance: number) => {
    const apart = Math.abs(distance);
    const own = buckets === null || apart <= middle ? apart : grown(apart);
    return Math.min(Math.max(0, span - Math.sign(distance) * own), 2 * span - 1);
  };
  return listed(2 * span, 2 * farthest, bucket);
}

/** Lists the buckets of distances up to `reach`, or up to the first one from which on all that follow are the same. */
function listed(count: number, reach: number, bucket: (distance: number) => number): DistanceBuckets {
  if (!(count <= 2 * MAX_DISTANCES && reach <= 2 * MAX_DISTANCES))
    throw new Error(`At most ${MAX_DISTANCES} distances are told apart.`);
  let last = reach;
  while (last > 1 && bucket(last) === bucket(last - 1) && bucket(-last) === bucket(1 - last)) last--;
  return { count, buckets: Array.from({ length: 2 * last + 1 }, (_, i) => bucket(i - last)) };
}
