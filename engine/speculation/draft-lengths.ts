/** Nothing is ever certain: a draft token is counted with at most this probability. */
const MAX_ACCEPTANCE = 0.95;
/** What a draft must promise at least to be worth the trouble: this much more per millisecond. */
const LEAST_GAIN = 1.02;

/** A sequence that could have a draft. */
export interface DraftCandidate {
  /** Most tokens of its draft. */
  most: number;
  /** Probability that a token of it is accepted, given that those before it are. */
  acceptance: number;
  /** The draft model draws its tokens, one round for each. */
  drawn: boolean;
}

export interface DraftLoad {
  /** Rows of the step without drafts, those of contexts included. */
  rows: number;
  /** Rows that there is room for beside them. */
  spareRows: number;
  /** What a step of so many rows costs. */
  costOf: (rows: number) => number;
  /** What a round of the draft model that draws for so many sequences costs, in the same unit. */
  roundCostOf: (sequences: number) => number;
}

export interface DraftChoice {
  /** Length of each candidate's draft. */
  lengths: number[];
  /** What each token takes less, in the unit of the costs, because the draft model draws; 0 where it does not. */
  savedByModel: number;
}

/**
 * How long a draft each candidate gets, so that the step brings the most tokens for its time; all 0 where drafts would
 * make the engine slower.
 *
 * Draft tokens are added one by one, the most probable first. A token is worth the probability that it and all before it
 * are accepted; every row of the step without drafts, a context's too, is worth 1. Of all the steps that come about in
 * this way the one that is worth most for its cost is taken:
 *
 *   rows   worth                   cost of the step   worth / cost     acceptance 0.7, 3 rows cost what 1 does
 *    1     1                       10                 0.100
 *    2     1 + 0.7                 10                 0.170
 *    3     1 + 0.7 + 0.49          10                 0.219            <- a draft of 2
 *    4     1 + 0.7 + 0.49 + 0.34   13                 0.195
 *
 * Once each row costs its share, as in a full batch, a token that is not certain is worth less than its row costs, and
 * nothing is drafted. Whether the draft model's rounds pay is seen against the best without it.
 */
export function chooseDraftLengths(candidates: readonly DraftCandidate[], load: DraftLoad): DraftChoice {
  const none = { lengths: candidates.map(() => 0), value: leastValue(load) };
  const looked = candidates.map((candidate) => (candidate.drawn ? { ...candidate, most: 0 } : candidate));
  const withoutRounds = improve(none, looked, load);
  if (!candidates.some(({ drawn }) => drawn)) return { lengths: withoutRounds.lengths, savedByModel: 0 };
  const best = improve(withoutRounds, candidates, load);
  return { lengths: best.lengths, savedByModel: 1 / withoutRounds.value - 1 / best.value };
}

/** What a step must be worth for its cost to be better than one without drafts. */
function leastValue({ rows, costOf }: Pick<DraftLoad, 'rows' | 'costOf'>): number {
  return (rows / costOf(rows)) * LEAST_GAIN;
}

interface Choice {
  lengths: number[];
  /** Worth for its cost. */
  value: number;
}

/** The best of the steps that come about by adding one token after the other, if it is better than `choice`. */
function improve(choice: Choice, candidates: readonly DraftCandidate[], load: DraftLoad): Choice {
  const lengths = candidates.map(() => 0);
  let best = choice;
  let worth = load.rows;
  // Sequences in each round of the draft model: round 1 is at 0.
  const rounds: number[] = [];
  let roundsCost = 0;
  for (let added = 1; added <= load.spareRows; added++) {
    const next = mostProbable(candidates, lengths);
    if (next < 0) break;
    const { acceptance, drawn } = candidates[next]!;
    lengths[next]!++;
    worth += Math.min(acceptance, MAX_ACCEPTANCE) ** lengths[next]!;
    if (drawn) {
      const round = lengths[next]! - 1;
      const sequences = rounds[round] ?? 0;
      rounds[round] = sequences + 1;
      roundsCost += load.roundCostOf(sequences + 1) - (sequences === 0 ? 0 : load.roundCostOf(sequences));
    }
    const value = worth / (load.costOf(load.rows + added) + roundsCost);
    if (value > best.value) best = { lengths: lengths.slice(), value };
  }
  return best;
}

/**
 * Whether any draft at all could pay, if every token of it were as good as certain and drawn for nothing: asked before
 * anything is proposed, in every step of a full batch, which is to lose nothing. So it makes nothing.
 */
export function couldPay(load: Omit<DraftLoad, 'roundCostOf'>, candidates: number, most: number): boolean {
  const least = leastValue(load);
  let worth = load.rows;
  let probability = 1;
  for (let added = 1; added <= Math.min(load.spareRows, candidates * most); added++) {
    // Level by level: the first token of every draft, then the second of each.
    if ((added - 1) % candidates === 0) probability *= MAX_ACCEPTANCE;
    worth += probability;
    if (worth / load.costOf(load.rows + added) > least) return true;
  }
  return false;
}

/** The candidate whose next draft token is the most probable; -1: none takes another. */
function mostProbable(candidates: readonly DraftCandidate[], lengths: readonly number[]): number {
  let best = -1;
  let greatest = 0;
  for (const [index, { most, acceptance }] of candidates.entries()) {
    if (lengths[index]! >= most) continue;
    const probability = Math.min(acceptance, MAX_ACCEPTANCE) ** (lengths[index]! + 1);
    if (probability <= greatest) continue;
    best = index;
    greatest = probability;
  }
  return best;
}
