import type { ExpertRule } from '../../network/expert-rule.js';

/** An expert that a row goes to, and what it counts there. */
export interface NaiveShare {
  expert: number;
  share: number;
}

/**
 * The experts of a row, ascending: the op `experts` of network/plan.ts read literally, by full sorts and in double precision.
 * @param choiceBias of each expert; null: none
 */
export function naiveShares(
  scores: ArrayLike<number>,
  rule: ExpertRule,
  choiceBias: ArrayLike<number> | null = null,
): NaiveShare[] {
  const { used, normalize, scoring, factor = 1, sumEpsilon = 0 } = rule;
  const all = Array.from(scores, (_, expert) => expert);
  const open = openExperts(scores, rule, choiceBias);
  const values = orderOf(scores, rule, choiceBias);
  const chosen = highest(open, values, used).sort((a, b) => a - b);
  if (scoring === 'sparsemixer') return sparseShares(scores, chosen, rule);
  const none = all.some((expert) => Number.isNaN(scores[expert])) ? Number.NaN : 0;
  if (scoring === 'sigmoid') {
    const sum = normalize
      ? chosen.reduce((total, expert) => total + sigmoid(scores[expert]!), sumEpsilon)
      : 1;
    return chosen.map((expert) => ({ expert, share: (sigmoid(scores[expert]!) / (sum + none)) * factor }));
  }
  const among = normalize ? chosen : all;
  const most = Math.max(...among.map((expert) => scores[expert]!).filter((score) => !Number.isNaN(score)));
  const sum = among.reduce((total, expert) => total + Math.exp(scores[expert]! - most), none);
  return chosen.map((expert) => ({ expert, share: (Math.exp(scores[expert]! - most) / sum) * factor }));
}

/** Each of two experts has a softmax of its own, among those that are left and not further from it than 2 * jitter. */
function sparseShares(
  scores: ArrayLike<number>,
  chosen: number[],
  { jitter = 0, factor = 1 }: ExpertRule,
): NaiveShare[] {
  const [first] = highest(chosen, Array.from(scores), 1);
  return chosen.map((expert) => {
    const left = Array.from(scores).filter((_, other) => expert === first || other !== first);
    const most = scores[expert]!;
    const near = left.filter((score) => !((most - score) / Math.max(Math.abs(score), most) > 2 * jitter));
    const total = near.reduce((sum, score) => sum + Math.exp(score), 0);
    const isPlain = near.every((score) => Math.abs(score) < 50);
    const chance = isPlain
      ? Math.exp(most) / total
      : 1 / near.reduce((sum, score) => sum + Math.exp(score - most), 0);
    return { expert, share: chance * factor };
  });
}

const sigmoid = (score: number) => 1 / (1 + Math.exp(-score));

/** What the experts of a row are chosen by. */
function orderOf(
  scores: ArrayLike<number>,
  { groups, scoring }: ExpertRule,
  choiceBias: ArrayLike<number> | null,
): number[] {
  const all = Array.from(scores);
  if (groups === undefined && choiceBias === null) return all;
  const most = Math.max(...all);
  const sum = all.reduce((total, score) => total + Math.exp(score - most), 0);
  return all.map((score, expert) => {
    const chance = scoring === 'sigmoid' ? sigmoid(score) : Math.exp(score - most) / sum;
    return chance + (choiceBias?.[expert] ?? 0);
  });
}

/** The experts that a row may go to. */
function openExperts(
  scores: ArrayLike<number>,
  rule: ExpertRule,
  choiceBias: ArrayLike<number> | null,
): number[] {
  const all = Array.from(scores, (_, expert) => expert);
  const { groups } = rule;
  if (groups === undefined) return all;
  const values = orderOf(scores, rule, choiceBias);
  const groupOf = (expert: number) => Math.floor((expert * groups.count) / all.length);
  const numbers = Array.from({ length: groups.count }, (_, group) => group);
  const sums = numbers.map((group) => {
    const own = all.filter((expert) => groupOf(expert) === group);
    return highest(own, values, groups.top).reduce((sum, expert) => sum + values[expert]!, 0);
  });
  const used = highest(numbers, sums, groups.used);
  return all.filter((expert) => used.includes(groupOf(expert)));
}

/** The numbers with the highest values, the lower number first among equals, what is not a number last. */
function highest(numbers: readonly number[], values: readonly number[], count: number): number[] {
  const isNothing = (number: number) => Number(Number.isNaN(values[number]));
  // The difference of equal infinities is no number, so that the lower number comes first there too.
  return [...numbers]
    .sort((a, b) => isNothing(a) - isNothing(b) || values[b]! - values[a]! || a - b)
    .slice(0, count);
}
