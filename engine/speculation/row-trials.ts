import type { DraftCandidate, DraftLoad } from './draft-lengths.js';

/** Most draft tokens of a sequence in a trial. */
const TOKENS_EACH = 3;
/** Least acceptance that a draft in a trial is expected to have, so that a trial costs little even where it shows no gain. */
const MIN_ACCEPTANCE = 0.6;
/** Least share of the sequences that have such a draft: a few would show nothing above what steps differ by anyway. */
const MIN_SHARE = 0.25;
/** Steps between two trials: at first, and at most, since each that shows no gain doubles them. */
const FIRST_WAIT = 8;
const LONGEST_WAIT = 1024;

/**
 * Trials of steps that have more rows than any step whose time is known.
 *
 * Beyond those each row is guessed to cost its full share, and by this guess a full batch never drafts. The guess is right where
 * products take the time. Where contexts are long, a step reads each sequence's keys and values once for all its rows:
 *
 *   ms |                      . '  guess: twice the rows, twice the time
 *      |                  . '
 *      |              . '        _ -  64 sequences with 2048 tokens each
 *      |          . ' _ _ -  -
 *      |          *
 *      +----------|----------------- rows
 *                 64    128    256
 *
 * So now and then one step drafts a few tokens for every sequence that has likely ones; its time then counts like that of any
 * other step. If rows cost their full share after all, it has lost what was rejected, a part of a step.
 */
export class RowTrials {
  #wait = FIRST_WAIT;
  #stepsLeft = FIRST_WAIT;

  /** Notes a step of a full batch for which no draft could pay, as far as is known; true if the next one may be a trial. */
  noteStep(): boolean {
    if (--this.#stepsLeft > 0) return false;
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
    this.#stepsLeft = this.#wait;
    return true;
  }

  /** Notes that drafts pay: once they no longer do, the next trial comes soon. */
  notePaying(): void {
    this.#wait = FIRST_WAIT;
    this.#stepsLeft = FIRST_WAIT;
  }

  /** Lengths of each candidate's draft in a trial; all 0 where too few have likely tokens for it to show anything. */
  lengths(candidates: readonly DraftCandidate[], { spareRows }: Pick<DraftLoad, 'spareRows'>): number[] {
    const isLikely = ({ most, acceptance, drawn }: DraftCandidate) =>
      most > 0 && !drawn && acceptance >= MIN_ACCEPTANCE;
    const likely = candidates.filter(isLikely).length;
    const each = Math.min(TOKENS_EACH, Math.floor(spareRows / Math.max(1, likely)));
    if (likely < MIN_SHARE * candidates.length) return candidates.map(() => 0);
    return candidates.map((candidate) => (isLikely(candidate) ? Math.min(each, candidate.most) : 0));
  }
}
