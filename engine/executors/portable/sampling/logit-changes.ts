import type { RowBias, SamplingBatch, TokenMasks } from '../../../packed-call/sampling-batch.js';
import { forEachFollower } from './ngram-followers.js';

const round = Math.fround;

/**
 * Changes that a request makes to its row of logits before anything is drawn, in this order:
 *
 *   mask -> biases -> repetition penalty -> frequency and presence penalty -> penalties of the request's own (DRY)
 *     -> bans (repeated n-grams, banned tokens)
 *
 * Penalties and bans change few tokens: their logits are noted and put back. A mask, and a bias on the whole vocabulary,
 * are applied to a copy. Every step is rounded to float32, as in the native sampler.
 */
export class LogitChanges {
  /** True if the changes applied last can make a finite logit -Infinity. */
  bans = false;
  /** False if a logit that a ban replaced was NaN or Infinity: the row is broken although this no longer shows. */
  replacedFinite = true;
  readonly #copy: Float32Array;
  /** Occurrences in the generated part; all zero between rows. */
  readonly #counts: Int32Array;
  readonly #isSeen: Uint8Array;
  readonly #changed: { token: number; logit: number }[] = [];
  #row: Float32Array = new Float32Array(0);

  constructor(vocabSize: number) {
    this.#copy = new Float32Array(vocabSize);
    this.#counts = new Int32Array(vocabSize);
    this.#isSeen = new Uint8Array(vocabSize);
  }

  /** Returns the row to sample from: `logits` changed in place, or a copy. Valid until `undo`. */
  apply(sampling: SamplingBatch, row: number, logits: Float32Array): Float32Array {
    this.#row = logits;
    this.replacedFinite = true;
    const mask = sampling.tokenMasks?.maskOfRow[row] ?? -1;
    if (mask >= 0) this.#mask(sampling.tokenMasks!, mask);
    const bias = rowOf(sampling.biases, row);
    if (bias !== undefined) this.#addBias(bias);
    this.#penalise(sampling, row);
    const penalties = rowOf(sampling.penalties, row);
    if (penalties !== undefined) this.#addBias(penalties);
    const history = sampling.history.subarray(sampling.historyStart[row]!, sampling.historyStart[row + 1]!);
    const ngram = sampling.noRepeatNgramSize[row]!;
    if (ngram > 0) forEachFollower(history, ngram - 1, (token) => this.#ban(token));
    const banned = sampling.banned.subarray(sampling.bannedStart[row]!, sampling.bannedStart[row + 1]!);
    for (const token of banned) this.#ban(token);
    this.bans = mask >= 0 || bias !== undefined || ngram > 0 || banned.length > 0;
    return this.#row;
  }

  /** Restores the row's logits, in reverse, so that a token changed twice gets its first value back. */
  undo(): void {
    for (let i = this.#changed.length - 1; i >= 0; i--) {
      const { token, logit } = this.#changed[i]!;
      this.#row[token] = logit;
    }
    this.#changed.length = 0;
  }

  #mask({ words }: TokenMasks, mask: number): void {
    const logits = this.#row;
    const copy = this.#copy;
    copy.set(logits);
    const firstWord = mask * Math.ceil(copy.length / 32);
    for (let begin = 0, word = firstWord; begin < copy.length; begin += 32, word++) {
      const forbidden = ~words[word]!;
      if (forbidden === 0) continue;
      const end = Math.min(begin + 32, copy.length);
      for (let token = begin; token < end; token++) {
        if (((forbidden >>> (token - begin)) & 1) === 0) continue;
        if (!(logits[token]! < Infinity)) this.replacedFinite = false;
        copy[token] = -Infinity;
      }
    }
    this.#row = copy;
  }

  #addBias({ tokens, values }: RowBias): void {
    if (tokens === null) {
      for (let token = 0; token < this.#copy.length; token++)
        this.#copy[token] = this.#row[token]! + values[token]!;
      this.#row = this.#copy;
      return;
    }
    for (let i = 0; i < tokens.length; i++) {
      this.#note(tokens[i]!);
      this.#row[tokens[i]!]! += values[i]!;
    }
  }

  #penalise(sampling: SamplingBatch, row: number): void {
    const repetition = sampling.repetitionPenalty[row]!;
    const presence = sampling.presencePenalty[row]!;
    const frequency = sampling.frequencyPenalty[row]!;
    if (repetition === 1 && presence === 0 && frequency === 0) return;
    const begin = sampling.historyStart[row]!;
    const generatedBegin = begin + sampling.historyPromptLength[row]!;
    const first = this.#changed.length;
    for (let i = begin; i < sampling.historyStart[row + 1]!; i++) {
      const token = sampling.history[i]!;
      if (token < 0) continue;
      if (i >= generatedBegin) this.#counts[token]!++;
      if (this.#isSeen[token] === 1) continue;
      this.#isSeen[token] = 1;
      this.#note(token);
    }
    for (let i = first; i < this.#changed.length; i++) {
      const { token, logit } = this.#changed[i]!;
      const repeated = round(logit < 0 ? logit * repetition : logit / repetition);
      const count = this.#counts[token]!;
      this.#row[token] = repeated - round(round(frequency * count) + (count > 0 ? presence : 0));
      this.#counts[token] = 0;
      this.#isSeen[token] = 0;
    }
  }

  #ban(token: number): void {
    const logit = this.#row[token]!;
    if (logit === -Infinity) return;
    if (!(logit < Infinity)) this.replacedFinite = false;
    this.#note(token);
    this.#row[token] = -Infinity;
  }

  #note(token: number): void {
    this.#changed.push({ token, logit: this.#row[token]! });
  }
}

/** Finds the entry of a row in a list with ascending rows. */
export function rowOf<T extends { row: number }>(list: readonly T[] | undefined, row: number): T | undefined {
  if (list === undefined || list.length === 0) return undefined;
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle]!.row < row) low = middle + 1;
    else high = middle;
  }
  return list[low]?.row === row ? list[low] : undefined;
}
