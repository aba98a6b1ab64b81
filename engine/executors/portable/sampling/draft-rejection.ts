import type { DraftRow, SamplingBatch } from '../../../packed-call/sampling-batch.js';
import { type PhiloxKey, philoxUniform } from './philox.js';
import type { RowScan } from './row-scan.js';
import type { OrderBound, Selection } from './selection.js';
import { weightOf } from './weight-of.js';

/** Numbers of these draws at a position, apart from those of ordinary draws, which count from 0. */
const ACCEPTANCE_DRAW = 0x80000000;
const RESIDUAL_DRAW = 0x80000001;
/** Row that is drawn from, finite or -Infinity, with the results of `scan`. */
export interface DraftedRow {
  logits: Float32Array;
  scan: RowScan;
  selection: Selection;
  key: PhiloxKey;
}

/**
 * Rejection sampling against a draft whose distribution is known, as in engine/executors/native/executor/draft_rejection.h. With
 * p the request's distribution and q the one that its draft token d was drawn from,
 *
 *   d is taken with probability min(1, p(d) / q(d)), else a token is drawn from what p has more than q
 *
 * p is the distribution after the temperature that top-k, top-p and min-p leave; q is the softmax of the draft's unchanged
 * logits.
 */
export class DraftRejection {
  readonly #target: Float64Array;
  readonly #draft: Float64Array;

  constructor(vocabSize: number) {
    this.#target = new Float64Array(vocabSize);
    this.#draft = new Float64Array(vocabSize);
  }

  /** Draws the token of a row that is not greedy. */
  draw(sampling: SamplingBatch, { row, token, logits }: DraftRow, drafted: DraftedRow): number {
    this.#weighTarget(sampling, row, drafted);
    this.#weighDraft(logits);
    const [target, draft] = [this.#target, this.#draft];
    if (philoxUniform(drafted.key, ACCEPTANCE_DRAW) * draft[token]! < target[token]!) return token;
    let sum = 0;
    for (let t = 0; t < target.length; t++) sum += Math.max(0, target[t]! - draft[t]!);
    // If p equals q except for rounding there is no rest to draw from, and p itself will do.
    const isRest = sum > 0;
    let left = philoxUniform(drafted.key, RESIDUAL_DRAW) * (isRest ? sum : 1);
    let found = -1;
    for (let t = 0; t < target.length; t++) {
      const mass = isRest ? target[t]! - draft[t]! : target[t]!;
      if (mass <= 0) continue;
      found = t;
      left -= mass;
      if (left < 0) break;
    }
    return found;
  }

  /** Fills target with p. */
  #weighTarget(sampling: SamplingBatch, row: number, { logits, scan, selection }: DraftedRow): void {
    const temperature = sampling.temperature[row]!;
    const [topK, topP, minP] = [sampling.topK[row]!, sampling.topP[row]!, sampling.minP[row]!];
    const target = this.#target;
    for (let t = 0; t < target.length; t++) target[t] = weightOf(logits[t]!, scan.maximum, 1 / temperature);
    if (topK > 0 && topK < target.length) this.#keep(logits, selection.boundOfGreatest(logits, topK, scan));
    if (topP < 1) this.#keep(logits, selection.boundOfMass(logits, target, topP * sumOf(target)));
    if (minP > 0) {
      const logit = Math.fround(scan.maximum + Math.log(minP) * temperature);
      this.#keep(logits, { logit, before: target.length });
    }
    const kept = sumOf(target);
    for (let t = 0; t < target.length; t++) target[t]! /= kept;
  }

  /** Keeps in target only the tokens before a bound. */
  #keep(logits: Float32Array, { logit, before }: OrderBound): void {
    for (let t = 0; t < logits.length; t++) {
      const own = logits[t]!;
      if (!(own > logit || (own === logit && t < before))) this.#target[t] = 0;
    }
  }

  #weighDraft(logits: Float32Array): void {
    const draft = this.#draft;
    let maximum = -Infinity;
    for (let t = 0; t < draft.length; t++) maximum = Math.max(maximum, logits[t]!);
    let sum = 0;
    for (let t = 0; t < draft.length; t++) {
      draft[t] = weightOf(logits[t]!, maximum, 1);
      sum += draft[t]!;
    }
    for (let t = 0; t < draft.length; t++) draft[t]! /= sum;
  }
}

function sumOf(values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
}
