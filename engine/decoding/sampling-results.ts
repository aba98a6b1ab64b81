import type { SamplingBatch, SamplingOutput } from './sampling-batch.js';

/** Room for what `maxRows` rows of sampling give back: made once, but for the most probable tokens, whose room grows. */
export class SamplingResults implements SamplingOutput {
  readonly tokens: Int32Array;
  readonly logProbs: Float32Array;
  readonly status: Int32Array;
  readonly topStart: Int32Array;
  #topTokens = new Int32Array(0);
  #topLogProbs = new Float32Array(0);

  constructor(maxRows: number) {
    this.tokens = new Int32Array(maxRows);
    this.logProbs = new Float32Array(maxRows);
    this.status = new Int32Array(maxRows);
    this.topStart = new Int32Array(maxRows + 1);
  }

  get topTokens(): Int32Array {
    return this.#topTokens;
  }

  get topLogProbs(): Float32Array {
    return this.#topLogProbs;
  }

  /** Makes room for all that the rows of a batch ask for: how much that is only its requests know. */
  makeRoom({ numRows, numTopLogProbs }: SamplingBatch): void {
    let needed = 0;
    for (let row = 0; row < numRows; row++) needed += Math.max(0, numTopLogProbs[row]!);
    if (needed <= this.#topTokens.length) return;
    this.#topTokens = new Int32Array(needed);
    this.#topLogProbs = new Float32Array(needed);
  }
}
