import type { BeamParams } from './beam-params.js';
import type { GeneratedSequence } from './generated-sequence.js';

/** A sequence and its score, to be compared with others of its search. */
export interface Hypothesis {
  sequence: GeneratedSequence;
  score: number;
}

/** Score of a hypothesis of `numTokens` generated tokens, including the one that ended it. */
export function scoreOf(cumLogProb: number, numTokens: number, lengthPenalty: number): number {
  return cumLogProb / numTokens ** lengthPenalty;
}

/** The best hypotheses, best first; of equal ones the one that was there before. */
export function bestOf(hypotheses: readonly Hypothesis[], count: number): Hypothesis[] {
  // Equal scores are compared first, since -Infinity minus -Infinity is NaN.
  const order = (a: number, b: number) => (a === b ? 0 : b - a);
  return hypotheses.toSorted((a, b) => order(a.score, b.score)).slice(0, count);
}

/**
 * The best hypotheses that have ended, as many as there are beams, and the test whether the search is over. Its rules are those
 * of Hugging Face transformers. Once there are as many hypotheses as beams:
 *
 *   earlyStopping true       it is over
 *                 false      it is over if the best beam, ended as long as it is now, would not be better than the worst of them
 *                 'never'    the same, but with a positive length penalty as if it became as long as it may: no hypothesis
 *                            that could still become better is given up
 */
export class BeamHypotheses {
  readonly #params: BeamParams;
  readonly #maxNewTokens: number;
  #best: Hypothesis[] = [];

  constructor(params: BeamParams, maxNewTokens: number) {
    this.#params = params;
    this.#maxNewTokens = maxNewTokens;
  }

  /** The hypotheses, best first. */
  get best(): readonly Hypothesis[] {
    return this.#best;
  }

  /** True if a hypothesis of this score would be among the best. */
  takes(score: number): boolean {
    return this.#best.length < this.#params.width || score > this.#best.at(-1)!.score;
  }

  add(hypothesis: Hypothesis): void {
    this.#best = bestOf([...this.#best, hypothesis], this.#params.width);
  }

  /** `cumLogProb`: that of the best beam that goes on, after `numTokens` generated tokens. */
  isOver(cumLogProb: number, numTokens: number): boolean {
    const { width, lengthPenalty, earlyStopping } = this.#params;
    if (this.#best.length < width) return false;
    if (earlyStopping === true) return true;
    const length = earlyStopping === 'never' && lengthPenalty > 0 ? this.#maxNewTokens : numTokens;
    return scoreOf(cumLogProb, length, lengthPenalty) <= this.#best.at(-1)!.score;
  }

  clear(): void {
    this.#best = [];
  }
}
