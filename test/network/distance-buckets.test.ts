import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { debertaBuckets, t5Buckets } from '../../network/distance-buckets.js';
import type { DistanceBuckets } from '../../network/plan.js';

interface Golden {
  buckets: number | null;
  farthest: number;
  /** Bucket of each distance from -first on, as runs: [bucket, length]. */
  first: number;
  runs: [bucket: number, length: number][];
}

const FILE = new URL('../goldens/distance-buckets.json', import.meta.url);
const goldens = JSON.parse(readFileSync(FILE, 'utf8')) as { t5: Golden; deberta: Golden[] };

const inWords = ({ first, runs }: Golden) =>
  runs
    .flatMap(([bucket, length]) => Array.from({ length }, () => bucket))
    .map((bucket, i) => ({ distance: i - first, bucket }));

function bucketsOf({ buckets }: DistanceBuckets, golden: Golden) {
  const reach = (buckets.length - 1) / 2;
  return inWords(golden).map(({ distance }) => ({
    distance,
    bucket: buckets[Math.min(Math.max(-reach, distance), reach) + reach]!,
  }));
}

describe('the buckets of distances are those of transformers', () => {
  it('for T5 and MPNet', () => {
    const made = t5Buckets(goldens.t5.buckets!, goldens.t5.farthest);
    expect(made.count).toBe(32);
    expect(bucketsOf(made, goldens.t5)).toEqual(inWords(goldens.t5));
  });

  it.each(goldens.deberta)('for DeBERTa with $buckets buckets up to $farthest', (golden) => {
    const made = debertaBuckets(golden.buckets, golden.farthest);
    expect(made.count).toBe(2 * (golden.buckets ?? golden.farthest));
    expect(bucketsOf(made, golden)).toEqual(inWords(golden));
  });
});
