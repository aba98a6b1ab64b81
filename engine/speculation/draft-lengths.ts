import type { AttentionWindow } from '../../kvcache/attention-window.js';

/** Greatest probability that a draft token is counted with, since none is ever certain. */
const MAX_ACCEPTANCE = 0.95;
/** Least gain that a draft must promise: this many times as much per millisecond. */
const MIN_GAIN = 1.02;

/** A sequence that could have a draft. */
export interface DraftCandidate {
  /** Most tokens of its draft. */
  most: number;
  /** Probability that a token of it is accepted, given that those before it are. */
  acceptance: number;
  /** True if the draft model draws its tokens, one round for each. */
  drawn: boolean;
}

export interface DraftLoad {
  /** Rows of the step without drafts, including those of contexts. */
  rows: number;
  /** Rows that there is room for in addition. */
  spareRows: number;
  /** Cost of a step of `rows` rows. */
  costOf: (rows: number) => number;
  /** Cost of a round of the draft model for `sequences` sequences, in the same unit. */
  roundCostOf: (sequences: number) => number;
}

export interface DraftChoice {
  /** Length of each candidate's draft. */
  lengths: number[];
  /** Cost saved per token by the draft model, in the unit of the costs; 0 if it does not draw. */
  savedByModel: number;
}

/**
 * Chooses the length of each candidate's draft, so that the step brings the most tokens for its time; all 0 if drafts
 * would make the engine slower.
 *
 * Draft tokens are added one by one, the most probable first. A token is worth the probability that it and all before it
 * are accepted; every row of the step without drafts, a context's too, is worth 1. Of all the steps made in this way the
 * one that is worth most for its cost is taken:
 *
 *   rows   worth                   cost of the step   worth / cost     acceptance 0.7, 3 rows cost what 1 does
 *    1     1                       10                 0.100
 *    2     1 + 0.7                 10                 0.170
 *    3     1 + 0.7 + 0.49          10                 0.219            <- a draft of 2
 *    4     1 + 0.7 + 0.49 + 0.34   13                 0.195
 *
 * Once each row costs its full share, as in a full batch, an uncertain token is worth less than its row costs, and
 * nothing is drafted. The draft model's rounds are compared with the best choice without them.
 */
export function chooseDraftLengths(candidates: readonly DraftCandidate[], load: DraftLoad): DraftChoice {
  const none = { lengths: candidates.map(() => 0), value: leastValue(load) };
  const looked = candidates.map((candidate) => (candidate.drawn ? { ...candidate, most: 0 } : candidate));
  const withoutRounds = improve(none, looked, load);
  if (!candidates.some(({ drawn }) => drawn)) return { lengths: withoutRounds.lengths, savedByModel: 0 };
  const best = improve(withoutRounds, candidates, load);
  return { lengths: best.lengths, savedByModel: 1 / withoutRounds.value - 1 / best.value };
}

/** Worth per cost that a step needs to be better than one without drafts. */
function leastValue({ rows, costOf }: Pick<DraftLoad, 'rows' | 'costOf'>): number {
  return (rows / costOf(rows)) * MIN_GAIN;
}

interface Choice {
  lengths: number[];
  /** Worth of the step, divided by its cost. */
  value: number;
}

/** The best of the steps made by adding one token after the other, if it is better than `choice`. */
function improve(choice: Choice, candidates: readonly DraftCandidate[], load: DraftLoad): Choice {
  const lengths = candidates.map(() => 0);
  let best = choice;
  let worth = load.rows;
  // Number of sequences in each round of the draft model; index 0 is round 1.
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
 * True if any draft at all could pay, even if every token of it were nearly certain and drawn for nothing. Asked before
 * anything is proposed, in every step of a full batch, which must lose no time; so it allocates nothing.
 */
export function couldPay(load: Omit<DraftLoad, 'roundCostOf'>, candidates: number, most: number): boolean {
  const least = leastValue(load);
  let worth = load.rows;
  let probability = 1;
  for (let added = 1; added <= Math.min(load.spareRows, candidates * most); added++) {
    // Tokens are added level by level: the first token of every draft, then the second of each.
    if ((added - 1) % candidates === 0) probability *= MAX_ACCEPTANCE;
    worth += probability;
    if (worth / load.costOf(load.rows + added) > least) return true;
  }
  return false;
}

/** The candidate whose next draft token is the most probable; -1: none can take another. */
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

/**
 * Most draft tokens that a sequence of `length` tokens, the newest of them not in the cache, may have in a window. The
 * draft may be rejected, so it must not write over a token that is attended to without it:
 *
 *   ring of 12 slots, window 10, no sinks, length 21: the newest token is at 20 and attends to 11 .. 20
 *
 *   a draft at 21 and 22     takes the slots of 9 and 10, which no row sees any more
 *   a third token, at 23     would take that of 11
 *
 * So a draft may have as many tokens as the ring has slots more than the window, which is few, and none if a window is
 * whole blocks. As long as a sequence writes over nothing at all there is no such limit.
 */
export function longestDraftInWindow(
  window: AttentionWindow | null,
  length: number,
  tokensPerBlock: number,
): number {
  if (window === null) return Number.POSITIVE_INFINITY;
  const ring = window.ringBlocks * tokensPerBlock;
  const unbroken = window.maxBlocks * tokensPerBlock;
  const seen = window.maxAttentionWindow - window.sinkTokenLength;
  return Math.max(unbroken - length, ring - seen);
}
