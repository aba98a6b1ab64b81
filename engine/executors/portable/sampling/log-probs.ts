import type { RowScan } from './row-scan.js';
import type { Selection } from './selection.js';
import { weightOf } from './weight-of.js';

/** Log-softmax of a row of finite logits at single tokens: x[t] - max - log(sum(exp(x - max))). */
export class LogProbs {
  readonly #logits: Float32Array;
  readonly #scan: RowScan;
  readonly #logSum: number;

  /** @param scan the scan of these logits */
  constructor(logits: Float32Array, scan: RowScan) {
    this.#logits = logits;
    this.#scan = scan;
    const { maximum } = scan;
    let sum = 0;
    for (let token = 0; token < logits.length; token++) sum += weightOf(logits[token]!, maximum, 1);
    this.#logSum = maximum + Math.log(sum);
  }

  of(token: number): number {
    return this.#logits[token]! - this.#logSum;
  }

  /** Writes as many of the most probable tokens as `tokens` holds, equal ones by id; -1 and -Infinity beyond the vocabulary. */
  top(selection: Selection, tokens: Int32Array, logProbs: Float32Array): void {
    const count = Math.min(tokens.length, this.#logits.length);
    if (count > 0) selection.greatestTokens(this.#logits, count, this.#scan, tokens);
    for (let i = 0; i < count; i++) logProbs[i] = this.of(tokens[i]!);
    tokens.fill(-1, count);
    logProbs.fill(-Infinity, count);
  }
}
