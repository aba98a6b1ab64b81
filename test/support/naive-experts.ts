/** An expert that a row goes to, and what it counts there. */
export interface NaiveShare {
  expert: number;
  share: number;
}

/** The experts of a row, ascending: the op `experts` of network/plan.ts read literally, by a full sort and in double precision. */
export function naiveShares(
  scores: ArrayLike<number>,
  { used, normalize }: { used: number; normalize: boolean },
): NaiveShare[] {
  const all = Array.from(scores, (_, expert) => expert);
  const isNothing = (expert: number) => Number(Number.isNaN(scores[expert]));
  // The difference of equal infinities is no number, so that the lower number comes first there too.
  const chosen = [...all]
    .sort((a, b) => isNothing(a) - isNothing(b) || scores[b]! - scores[a]! || a - b)
    .slice(0, used)
    .sort((a, b) => a - b);
  const among = normalize ? chosen : all;
  const highest = Math.max(...all.map((expert) => scores[expert]!).filter((score) => !Number.isNaN(score)));
  const none = all.some((expert) => Number.isNaN(scores[expert])) ? Number.NaN : 0;
  const sum = among.reduce((total, expert) => total + Math.exp(scores[expert]! - highest), none);
  return chosen.map((expert) => ({ expert, share: Math.exp(scores[expert]! - highest) / sum }));
}
