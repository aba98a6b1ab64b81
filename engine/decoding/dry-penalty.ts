import { BIAS_MAX, type SamplingParams } from '../../callbacks/sampling-params.js';

/** Longest sequence of tokens that breaks a repetition. */
export const BREAKER_TOKENS_MAX = 20;

/**
 * DRY ("don't repeat yourself"): a token that would make a repetition of the last tokens longer loses
 * multiplier * base ** (length - allowedLength) of its logit, with the length of the longest repetition that it would go on
 * with, from allowedLength on. Breakers end repetitions: no repetition reaches back over the last one.
 *
 *   history    a b c x y a b c      c was followed by x after the same three tokens: x loses base ** (3 - allowedLength)
 *
 * The penalty depends on the tokens in front of the place alone, so it is the same after a pause, and in a draft.
 */
export class DryPenalty {
  readonly #multiplier: number;
  readonly #base: number;
  readonly #vocabSize: number;
  readonly #allowedLength: number;
  /** Number of last tokens that are searched; -1: all. */
  readonly #lastN: number;
  /** Rest of each breaker after its first token, by that token. */
  readonly #breakers = new Map<number, Int32Array[]>();
  /** Length of the repetition that ends at each place, counted from the end. */
  #lengths = new Int32Array(0);
  readonly #longest = new Map<number, number>();

  private constructor(sampling: SamplingParams, breakers: readonly Int32Array[], vocabSize: number) {
    this.#vocabSize = vocabSize;
    this.#multiplier = sampling.dryMultiplier;
    this.#base = sampling.dryBase;
    this.#allowedLength = sampling.dryAllowedLength;
    this.#lastN = sampling.dryPenaltyLastN;
    for (const breaker of breakers) {
      const rests = this.#breakers.get(breaker[0]!);
      if (rests === undefined) this.#breakers.set(breaker[0]!, [breaker.subarray(1)]);
      else rests.push(breaker.subarray(1));
    }
  }

  /** Null if the request does not use DRY. */
  static of(sampling: SamplingParams, breakers: readonly Int32Array[], vocabSize: number): DryPenalty | null {
    const isUsed = sampling.dryMultiplier > 0 && sampling.dryPenaltyLastN !== 0;
    return isUsed ? new DryPenalty(sampling, breakers, vocabSize) : null;
  }

  /** What is added to the logits of tokens after the first `length` tokens; null: nothing. */
  biasBehind(tokens: Int32Array, length: number): { tokens: Int32Array; values: Float32Array } | null {
    const count = this.#lastN < 0 ? length : Math.min(this.#lastN, length);
    if (count <= this.#allowedLength) return null;
    const history = tokens.subarray(length - count, length);
    const most = this.#behindBreaker(history);
    if (most < this.#allowedLength) return null;
    this.#findLongest(history, most);
    if (this.#longest.size === 0) return null;
    const penalised = Int32Array.from(this.#longest.keys());
    const values = Float32Array.from(this.#longest.values(), (repeated) => -this.#penaltyOf(repeated));
    return { tokens: penalised, values };
  }

  #penaltyOf(repeated: number): number {
    return Math.min(BIAS_MAX, this.#multiplier * this.#base ** (repeated - this.#allowedLength));
  }

  /** Number of tokens after the last breaker; all without one. */
  #behindBreaker(history: Int32Array): number {
    if (this.#breakers.size === 0) return history.length;
    for (let behind = 0; behind < history.length; behind++) {
      const first = history.length - 1 - behind;
      const rests = this.#breakers.get(history[first]!);
      if (rests === undefined) continue;
      let longest = -1;
      for (const rest of rests) {
        if (rest.length <= longest || rest.length > behind) continue;
        if (rest.every((token, i) => token === history[first + 1 + i])) longest = rest.length;
      }
      if (longest >= 0) return behind - longest;
    }
    return history.length;
  }

  /**
   * Finds the longest repetition in front of each token that once followed one, by the Z-algorithm from the end: each token is
   * compared about once.
   */
  #findLongest(history: Int32Array, most: number): void {
    const count = history.length;
    if (this.#lengths.length < count) this.#lengths = new Int32Array(2 * count);
    const lengths = this.#lengths;
    const back = (i: number) => history[count - 1 - i]!;
    this.#longest.clear();
    // [left, right) counted from the end: the match that reaches furthest equals the beginning.
    for (let i = 1, left = 0, right = 0; i < count; i++) {
      let same = i < right ? Math.min(right - i, lengths[i - left]!) : 0;
      while (i + same < count && back(same) === back(i + same)) same++;
      lengths[i] = same;
      if (i + same > right) [left, right] = [i, i + same];
      const repeated = Math.min(same, most);
      if (repeated < this.#allowedLength) continue;
      const next = back(i - 1);
      // A row of a prompt table is no token that could be drawn.
      if (next >= this.#vocabSize) continue;
      if (repeated > (this.#longest.get(next) ?? -1)) this.#longest.set(next, repeated);
    }
  }
}
