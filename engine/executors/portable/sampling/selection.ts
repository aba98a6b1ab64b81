import { GROUP, type RowScan } from './row-scan.js';

/** A beginning of the order: tokens whose logit is greater, and those with this logit whose id is below `before`. */
export interface OrderBound {
  logit: number;
  before: number;
}

/** Bound that holds all tokens that can be drawn. */
export const NO_BOUND: Readonly<OrderBound> = { logit: -Infinity, before: 0 };

/** True if a is the stricter bound, which holds no token that b does not hold. */
export function isStricter(a: OrderBound, b: OrderBound): boolean {
  return a.logit > b.logit || (a.logit === b.logit && a.before < b.before);
}

/**
 * Finds beginnings of the order "greatest logit first, equal ones by ascending id" without sorting the vocabulary:
 *
 *   groups of the vocabulary   | . a . | . . . | b . c | . d . | ...
 *   their greatest                 a       .       b       d          the k-th greatest of these is a bound for k tokens
 *   candidates                     a               b c     d          what is at least that; only these are put in order
 *
 * Rows must be free of NaN. The memory is made once.
 */
export class Selection {
  readonly #candidates: Int32Array;
  readonly #maxima: Float32Array;
  #size = 0;

  constructor(vocabSize: number) {
    this.#candidates = new Int32Array(vocabSize);
    this.#maxima = new Float32Array(Math.ceil(vocabSize / GROUP));
  }

  /** Bound of the first k tokens, 1 <= k < vocabSize, or of all tokens above -Infinity if there are fewer. */
  boundOfGreatest(logits: Float32Array, k: number, scan: RowScan): OrderBound {
    this.#gather(logits, k, scan);
    if (this.#size < k) return NO_BOUND;
    const token = this.#nth(logits, k);
    return { logit: logits[token]!, before: token + 1 };
  }

  /** Writes the first `count` tokens of the order, in order; -Infinity counts. 0 < count <= vocabSize. */
  greatestTokens(logits: Float32Array, count: number, scan: RowScan, tokens: Int32Array): void {
    this.#gather(logits, count, scan);
    if (this.#size > count) {
      this.#nth(logits, count);
      this.#size = count;
    }
    // Tokens of -Infinity come last, by id.
    const size = this.#size;
    for (let token = 0; token < logits.length && this.#size < count; token++) {
      if (logits[token] === -Infinity) this.#candidates[this.#size++] = token;
    }
    this.#candidates.subarray(0, size).sort((a, b) => logits[b]! - logits[a]! || a - b);
    tokens.set(this.#candidates.subarray(0, count));
  }

  /**
   * Bound of the tokens before which less than `mass` lies, always including the first one. Weights must be greater where
   * logits are; tokens without any weight are left out.
   */
  boundOfMass(logits: Float32Array, weights: Float64Array, mass: number): OrderBound {
    this.#size = 0;
    for (let token = 0; token < weights.length; token++)
      if (weights[token]! > 0) this.#candidates[this.#size++] = token;
    const ids = this.#candidates;
    let [low, high, before] = [0, this.#size - 1, 0];
    while (low < high) {
      const [leftEnd, rightBegin] = this.#part(logits, low, high);
      const beforeLeft = before;
      for (let i = low; i <= leftEnd; i++) before += weights[ids[i]!]!;
      if (before >= mass) {
        before = beforeLeft;
        high = leftEnd;
        continue;
      }
      for (let i = leftEnd + 1; i < rightBegin; i++) before += weights[ids[i]!]!;
      if (before >= mass) {
        low = leftEnd + 1;
        break;
      }
      low = Math.min(rightBegin, high);
    }
    const token = ids[low]!;
    return { logit: logits[token]!, before: token + 1 };
  }

  /**
   * Gathers as candidates a few tokens more than k, among them the first k in the order; fewer if fewer are above -Infinity.
   */
  #gather(logits: Float32Array, k: number, { groupMaxima }: RowScan): void {
    this.#size = 0;
    // If most groups contain one of the first k, the groups' maxima exclude nothing.
    const isFew = k <= groupMaxima.length / 2;
    if (isFew) this.#maxima.set(groupMaxima);
    const least = isFew ? nthGreatest(this.#maxima, k) : -Infinity;
    for (let group = 0; group < groupMaxima.length; group++) {
      const greatest = groupMaxima[group]!;
      if (greatest >= least && greatest > -Infinity) this.#gatherGroup(logits, group * GROUP, least);
    }
  }

  #gatherGroup(logits: Float32Array, begin: number, least: number): void {
    const end = Math.min(begin + GROUP, logits.length);
    for (let token = begin; token < end; token++) {
      const logit = logits[token]!;
      if (logit >= least && logit > -Infinity) this.#candidates[this.#size++] = token;
    }
  }

  /** Returns the k-th candidate in order; moves the k - 1 before it in front of it, in any order. */
  #nth(logits: Float32Array, k: number): number {
    let low = 0;
    let high = this.#size - 1;
    while (low < high) {
      const [leftEnd, rightBegin] = this.#part(logits, low, high);
      if (k - 1 <= leftEnd) high = leftEnd;
      else if (k - 1 >= rightBegin) low = rightBegin;
      else break;
    }
    return this.#candidates[k - 1]!;
  }

  /**
   * Parts the candidates low .. high into those in front of one of them in order, and those after it. Returns
   * [end of the first part, begin of the second].
   */
  #part(logits: Float32Array, low: number, high: number): [number, number] {
    const ids = this.#candidates;
    const pivot = ids[(low + high) >>> 1]!;
    const logit = logits[pivot]!;
    const isInFront = (id: number) => logits[id]! > logit || (logits[id] === logit && id < pivot);
    const isBehind = (id: number) => logits[id]! < logit || (logits[id] === logit && id > pivot);
    let i = low;
    let j = high;
    while (i <= j) {
      while (isInFront(ids[i]!)) i++;
      while (isBehind(ids[j]!)) j--;
      if (i > j) break;
      const other = ids[i]!;
      ids[i++] = ids[j]!;
      ids[j--] = other;
    }
    return [j, i];
  }
}

/** The k-th greatest value; reorders the values. */
function nthGreatest(values: Float32Array, k: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const pivot = values[(low + high) >>> 1]!;
    let i = low;
    let j = high;
    while (i <= j) {
      while (values[i]! > pivot) i++;
      while (values[j]! < pivot) j--;
      if (i > j) break;
      const other = values[i]!;
      values[i++] = values[j]!;
      values[j--] = other;
    }
    if (k - 1 <= j) high = j;
    else if (k - 1 >= i) low = i;
    else break;
  }
  return values[k - 1]!;
}
