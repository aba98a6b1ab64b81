import { GROUP, type RowScan } from './row-scan.js';
import type { OrderBound } from './selection.js';
import { weightOf } from './weight-of.js';

/**
 * Weights exp((logit - maximum) / temperature) of the tokens before a bound, and their sums by groups. Bounds only become
 * stricter while a row is drawn from: a weight is computed once.
 */
export class RowWeights {
  readonly #weights: Float64Array;
  /** Sum of each group's weights before the bound. */
  readonly #sums: Float64Array;
  #logits: Float32Array = new Float32Array(0);
  #scan!: RowScan;
  #bound!: OrderBound;

  constructor(vocabSize: number) {
    this.#weights = new Float64Array(vocabSize);
    this.#sums = new Float64Array(Math.ceil(vocabSize / GROUP));
  }

  /** Begins a row; returns the sum of the weights before `bound`. */
  begin(logits: Float32Array, scan: RowScan, bound: OrderBound, inverseTemperature: number): number {
    this.#logits = logits;
    this.#scan = scan;
    const { groupMaxima, maximum } = scan;
    for (let group = 0; group < groupMaxima.length; group++) {
      if (groupMaxima[group]! < bound.logit) continue;
      const end = Math.min((group + 1) * GROUP, logits.length);
      for (let token = group * GROUP; token < end; token++)
        this.#weights[token] = weightOf(logits[token]!, maximum, inverseTemperature);
    }
    return this.sumBefore(bound);
  }

  /** Returns the sum of the weights before `bound`, which is at least as strict as the bound of the call before. */
  sumBefore(bound: OrderBound): number {
    this.#bound = bound;
    const { groupMaxima } = this.#scan;
    let total = 0;
    for (let group = 0; group < groupMaxima.length; group++) {
      this.#sums[group] = groupMaxima[group]! < bound.logit ? 0 : this.#sumOfGroup(group);
      total += this.#sums[group]!;
    }
    return total;
  }

  /** The token at which the running sum of the weights before the bound, in ascending id, passes `target`. */
  tokenAt(target: number): number {
    let before = 0;
    let last = -1;
    for (let group = 0; group < this.#sums.length; group++) {
      const sum = this.#sums[group]!;
      if (sum <= 0) continue;
      last = group;
      if (before + sum > target) break;
      before += sum;
    }
    // The target lies past the end of a group whose sum was rounded above its parts: take the group's last token that
    // can be drawn.
    let found = -1;
    const end = Math.min((last + 1) * GROUP, this.#logits.length);
    for (let token = last * GROUP; token < end; token++) {
      const weight = this.#weights[token]!;
      if (weight <= 0 || !this.#holds(token)) continue;
      found = token;
      before += weight;
      if (before > target) break;
    }
    return found;
  }

  #sumOfGroup(group: number): number {
    const end = Math.min((group + 1) * GROUP, this.#logits.length);
    let sum = 0;
    for (let token = group * GROUP; token < end; token++)
      if (this.#holds(token)) sum += this.#weights[token]!;
    return sum;
  }

  #holds(token: number): boolean {
    const { logit, before } = this.#bound;
    const own = this.#logits[token]!;
    return own > logit || (own === logit && token < before);
  }
}
