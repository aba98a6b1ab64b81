import {
  ROW_NO_TOKEN_LEFT,
  ROW_NOT_FINITE,
  ROW_OK,
  type SamplingBatch,
  type SamplingOutput,
} from '../../../packed-call/sampling-batch.js';
import { ChainSampler } from './chain-sampler.js';
import { DraftRejection } from './draft-rejection.js';
import { LogProbs } from './log-probs.js';
import { LogitChanges, rowOf } from './logit-changes.js';
import { type PhiloxKey, philoxUniform } from './philox.js';
import { RowScan } from './row-scan.js';
import { RowWeights } from './row-weights.js';
import { isStricter, NO_BOUND, type OrderBound, Selection } from './selection.js';

/** Temperatures below this are greedy: their distribution is a single token in float32. */
const MIN_TEMPERATURE = Math.fround(1e-5);

/**
 * Samples one row of logits as engine/packed-call/sampling-batch.ts defines it, with the draws of the native sampler
 * (engine/executors/native/executor/sampling.h): it draws without sorting from the tokens that top-k and min-p keep; if top-p
 * does not keep the token it is rejected, and the next draw is among the tokens before it. Weights and sums are float64 here, so
 * a draw within an ulp or so of a boundary may fall on the other side of it than in the native sampler.
 *
 * The row's logits are changed while it is sampled and put back afterwards. Its memory is made once.
 */
export class RowSampler {
  readonly scan: RowScan;
  readonly selection: Selection;
  readonly #changes: LogitChanges;
  readonly #weights: RowWeights;
  readonly #logSoftmax: Float32Array;
  #rejection: DraftRejection | null = null;
  #chains: ChainSampler | null = null;

  constructor(vocabSize: number) {
    this.scan = new RowScan(vocabSize);
    this.selection = new Selection(vocabSize);
    this.#changes = new LogitChanges(vocabSize);
    this.#weights = new RowWeights(vocabSize);
    this.#logSoftmax = new Float32Array(vocabSize);
  }

  /** Samples one row; output.topStart has the first entry of the row's top tokens. */
  sample(sampling: SamplingBatch, output: SamplingOutput, row: number, logits: Float32Array): void {
    if (sampling.listsCandidates?.[row]) this.#listCandidates(sampling, output, row, logits);
    else this.#drawToken(sampling, output, row, logits);
  }

  #drawToken(sampling: SamplingBatch, output: SamplingOutput, row: number, logits: Float32Array): void {
    const changed = this.#changes.apply(sampling, row, logits);
    this.scan.scan(changed);
    const token =
      this.scan.isFinite && this.#changes.replacedFinite ? this.#choose(sampling, row, changed) : -1;
    output.tokens[row] = token;
    output.logProbs[row] = 0;
    if (token >= 0) {
      output.status[row] = ROW_OK;
      this.#writeLogProbs(sampling, output, row, changed);
    } else {
      const isEmpty = this.#changes.bans && changed.every((logit) => logit === -Infinity);
      output.status[row] = isEmpty ? ROW_NO_TOKEN_LEFT : ROW_NOT_FINITE;
    }
    this.#changes.undo();
  }

  #choose(sampling: SamplingBatch, row: number, logits: Float32Array): number {
    if (sampling.temperature[row]! < MIN_TEMPERATURE) return this.scan.best;
    const key = {
      seed: sampling.seed[row]!,
      sequenceIndex: sampling.sequenceIndex[row]!,
      position: sampling.position[row]!,
    };
    const chain = rowOf(sampling.chains, row);
    if (chain !== undefined) {
      this.#chains ??= new ChainSampler(logits.length);
      return this.#chains.draw(sampling, chain, logits, key);
    }
    const draft = rowOf(sampling.draftRows, row);
    if (draft === undefined) return this.#draw(sampling, row, logits, key);
    this.#rejection ??= new DraftRejection(logits.length);
    const { scan, selection } = this;
    return this.#rejection.draw(sampling, draft, { logits, scan, selection, key });
  }

  #draw(sampling: SamplingBatch, row: number, logits: Float32Array, key: PhiloxKey): number {
    const temperature = sampling.temperature[row]!;
    const [topK, topP, minP] = [sampling.topK[row]!, sampling.topP[row]!, sampling.minP[row]!];
    const { scan, selection } = this;
    const weights = this.#weights;
    const truncatesK = topK > 0 && topK < logits.length;
    let bound: OrderBound = truncatesK ? selection.boundOfGreatest(logits, topK, scan) : NO_BOUND;
    let sum = weights.begin(logits, scan, bound, 1 / temperature);
    const mass = topP * sum;
    if (minP > 0) {
      const logit = Math.fround(scan.maximum + Math.log(minP) * temperature);
      const floor = { logit, before: logits.length };
      if (isStricter(floor, bound)) {
        bound = floor;
        sum = weights.sumBefore(bound);
      }
    }
    for (let draw = 0; ; draw++) {
      const token = weights.tokenAt(philoxUniform(key, draw) * sum);
      if (topP >= 1) return token;
      bound = { logit: logits[token]!, before: token };
      sum = weights.sumBefore(bound);
      // The most probable token is always kept: nothing lies before it.
      if (sum <= 0 || sum < mass) return token;
    }
  }

  /**
   * Lists the most probable tokens: the log-softmax is taken of the unchanged logits, the request's changes are made to
   * it, and its greatest values are listed.
   */
  #listCandidates(sampling: SamplingBatch, output: SamplingOutput, row: number, logits: Float32Array): void {
    output.tokens[row] = -1;
    output.logProbs[row] = 0;
    output.status[row] = ROW_NOT_FINITE;
    this.scan.scan(logits);
    if (!this.scan.isFinite) return;
    const probs = new LogProbs(logits, this.scan);
    for (let token = 0; token < logits.length; token++) this.#logSoftmax[token] = probs.of(token);
    const changed = this.#changes.apply(sampling, row, this.#logSoftmax);
    this.scan.scan(changed);
    const [first, end] = [output.topStart[row]!, output.topStart[row + 1]!];
    const tokens = output.topTokens.subarray(first, end);
    this.selection.greatestTokens(changed, end - first, this.scan, tokens);
    for (let i = 0; i < tokens.length; i++) output.topLogProbs[first + i] = changed[tokens[i]!]!;
    output.tokens[row] = tokens[0]!;
    output.logProbs[row] = output.topLogProbs[first]!;
    output.status[row] = output.logProbs[row]! > -Infinity ? ROW_OK : ROW_NO_TOKEN_LEFT;
    this.#changes.undo();
  }

  #writeLogProbs(sampling: SamplingBatch, output: SamplingOutput, row: number, logits: Float32Array): void {
    if (sampling.numTopLogProbs[row]! < 0) return;
    const probs = new LogProbs(logits, this.scan);
    output.logProbs[row] = probs.of(output.tokens[row]!);
    const [first, end] = [output.topStart[row]!, output.topStart[row + 1]!];
    probs.top(this.selection, output.topTokens.subarray(first, end), output.topLogProbs.subarray(first, end));
  }
}
