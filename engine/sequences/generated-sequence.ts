import {
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
  type FinishCode,
} from '../../callbacks/response-batch.js';
import { endsWithStopWord } from '../../callbacks/stop-words.js';
import { SequenceChain } from '../decoding/sampler-chain.js';
import type { SamplingOutput } from '../packed-call/sampling-batch.js';
import type { RequestSpec } from './request-spec.js';

/**
 * One of the sequences that a request generates: its tokens, the prompt first, in one array; the reported values of
 * each generated token; and how the sequence ended.
 */
export class GeneratedSequence {
  /** Index of the sequence in its request, which its random numbers depend on; counted from firstSequenceIndex. */
  readonly index: number;
  finishReason: FinishCode;
  /**
   * Number of generated tokens that are known from elsewhere: they have no log-probs here, and no response carries
   * them.
   */
  readonly numFromElsewhere: number;
  /** Number of generated tokens that have been handed to a response. */
  numSent: number;
  /** True if a response has said how it ended. */
  isEndSent = false;
  /** Sum of the log-probs of the tokens generated here, in token order. */
  cumLogProb = 0;
  /** Number of tokens generated here again whose value differed from the first time. */
  replayMismatches = 0;

  /** Filters that its tokens are drawn by; null: none but those of the row's columns. */
  readonly chain: SequenceChain | null;

  readonly #spec: RequestSpec;
  #tokens: Int32Array;
  #numKnown: number;
  #logProbs: Float32Array;
  #topTokens: Int32Array;
  #topLogProbs: Float32Array;
  /** With beams that return logits: the row that each generated token was chosen from. Copies share rows. */
  #logitRows: Float32Array[] = [];
  /** The row that the next token is chosen from; null: it is not kept. */
  #nextLogits: Float32Array | null = null;

  constructor(spec: RequestSpec, index: number) {
    this.index = index;
    this.#spec = spec;
    const { promptTokens, topLogProbs } = spec;
    this.chain = spec.chain && new SequenceChain(spec.chain);
    const known = spec.known?.[index];
    const numKnown = known?.tokens.length ?? 0;
    this.finishReason = known?.finishReason ?? FINISH_NOT_FINISHED;
    this.numFromElsewhere = numKnown;
    this.numSent = numKnown;
    const room = Math.max(numKnown, Math.min(spec.maxNewTokens, 64));
    this.#tokens = new Int32Array(promptTokens.length + room);
    this.#tokens.set(promptTokens);
    if (known !== undefined) this.#tokens.set(known.tokens, promptTokens.length);
    this.#numKnown = promptTokens.length + numKnown;
    this.#logProbs = new Float32Array(this.#needsLogProbs ? room : 0);
    this.#topTokens = new Int32Array(topLogProbs * room);
    this.#topLogProbs = new Float32Array(topLogProbs * room);
  }

  /** Mean log-prob of the generated tokens; -Infinity if there are none. */
  get meanLogProb(): number {
    return this.numGenerated === 0 ? Number.NEGATIVE_INFINITY : this.cumLogProb / this.numGenerated;
  }

  get isFinished(): boolean {
    return this.finishReason !== FINISH_NOT_FINISHED;
  }

  /** Number of tokens known so far, prompt and generated ones of all runs. */
  get numKnown(): number {
    return this.#numKnown;
  }

  /** Number of generated tokens known so far, over all runs. */
  get numGenerated(): number {
    return this.#numKnown - this.#promptLength;
  }

  /** All known tokens, prompt first, followed by a draft; the known ones end at numKnown. */
  get tokens(): Int32Array {
    return this.#tokens;
  }

  /**
   * Log-prob of each generated token; valid from numFromElsewhere up to numGenerated if the request reports log-probs.
   */
  get logProbs(): Float32Array {
    return this.#logProbs;
  }

  /** Most probable tokens of each generated token [numGenerated x topLogProbs]. */
  get topTokens(): Int32Array {
    return this.#topTokens;
  }

  get topLogProbs(): Float32Array {
    return this.#topLogProbs;
  }

  /** The rows of logits that its tokens were chosen from; empty if they were not kept. */
  get logitRows(): readonly Float32Array[] {
    return this.#logitRows;
  }

  /** Keeps these logits with the token that is chosen from them, in this sequence and in its copies. */
  chooseFrom(logits: Float32Array): void {
    this.#nextLogits = logits;
  }

  /**
   * Takes the token drawn in `row` of the output for place `place` and evaluates the stop conditions; `isLast`: no token
   * may follow it. A token that is known, from before a pause or from elsewhere, keeps its first value and log-prob and is
   * checked against no stop condition. Returns the number of new tokens: 0 or 1.
   */
  append(place: number, output: SamplingOutput, row: number, isLast: boolean): number {
    const token = output.tokens[row]!;
    if (place < this.#numKnown) {
      const isOwn = place >= this.#promptLength + this.numFromElsewhere;
      if (isOwn && this.#tokens[place] !== token) this.replayMismatches++;
      return 0;
    }
    if (token === this.#spec.endId) {
      this.finishReason = FINISH_END_ID;
      return 0;
    }
    this.chain?.take(this.numGenerated);
    this.#push(token, output.logProbs[row]!, output, row);
    if (this.#endsWithStopWord()) this.finishReason = FINISH_STOP_WORDS;
    else if (isLast) this.finishReason = FINISH_LENGTH;
    return 1;
  }

  /**
   * Writes the first `length` tokens of a draft to the places from `place` on, where drawn tokens will go. Tokens known
   * there from before a pause are a better draft, and stay. Returns the number of tokens in the draft.
   */
  writeDraft(place: number, draft: Int32Array, length: number): number {
    const known = this.#numKnown - place;
    if (known > 0) return Math.min(length, known);
    while (place + length > this.#tokens.length) this.#grow();
    this.#tokens.set(length === draft.length ? draft : draft.subarray(0, length), place);
    return length;
  }

  /** A copy of the sequence as far as it is known; `index`: the copy's index in its request. */
  copy(index: number): GeneratedSequence {
    const copy = new GeneratedSequence(this.#spec, index);
    copy.#tokens = this.#tokens.slice();
    copy.#numKnown = this.#numKnown;
    copy.#logProbs = this.#logProbs.slice();
    copy.#topTokens = this.#topTokens.slice();
    copy.#topLogProbs = this.#topLogProbs.slice();
    copy.#logitRows = [...this.#logitRows];
    copy.#nextLogits = this.#nextLogits;
    copy.cumLogProb = this.cumLogProb;
    return copy;
  }

  /** Appends a token listed in `row` of the output, without checking stop conditions. */
  extend(token: number, logProb: number, output: SamplingOutput, row: number): void {
    this.#push(token, logProb, output, row);
    if (this.#nextLogits !== null) this.#logitRows.push(this.#nextLogits);
    this.#nextLogits = null;
  }

  /** True if the sequence would end with a stop word if this token came next. */
  wouldStop(token: number): boolean {
    const { sampling, stopWords } = this.#spec;
    if (stopWords.length === 0 || this.numGenerated + 1 < sampling.minLength) return false;
    if (this.#numKnown === this.#tokens.length) this.#grow();
    this.#tokens[this.#numKnown] = token;
    return endsWithStopWord(stopWords, this.#tokens, this.#promptLength, this.#numKnown + 1);
  }

  #endsWithStopWord(): boolean {
    const { sampling, stopWords } = this.#spec;
    if (this.numGenerated < sampling.minLength) return false;
    return endsWithStopWord(stopWords, this.#tokens, this.#promptLength, this.#numKnown);
  }

  #push(token: number, logProb: number, output: SamplingOutput, row: number): void {
    if (this.#numKnown === this.#tokens.length) this.#grow();
    this.#tokens[this.#numKnown] = token;
    this.#numKnown++;
    if (!this.#needsLogProbs) return;
    const index = this.numGenerated - 1;
    this.#logProbs[index] = logProb;
    this.cumLogProb += logProb;
    const width = this.#spec.topLogProbs;
    const source = output.topStart[row]!;
    for (let i = 0; i < width; i++) {
      this.#topTokens[index * width + i] = output.topTokens[source + i]!;
      this.#topLogProbs[index * width + i] = output.topLogProbs[source + i]!;
    }
  }

  /** Doubles the room for generated tokens, so that a long limit costs nothing until it is used. */
  #grow(): void {
    const room = Math.min(this.#spec.maxNewTokens, 2 * (this.#tokens.length - this.#promptLength));
    this.#tokens = copyInto(new Int32Array(this.#promptLength + room), this.#tokens);
    if (!this.#needsLogProbs) return;
    const width = this.#spec.topLogProbs;
    this.#logProbs = copyInto(new Float32Array(room), this.#logProbs);
    this.#topTokens = copyInto(new Int32Array(width * room), this.#topTokens);
    this.#topLogProbs = copyInto(new Float32Array(width * room), this.#topLogProbs);
  }

  get #promptLength(): number {
    return this.#spec.promptTokens.length;
  }

  get #needsLogProbs(): boolean {
    return needsLogProbs(this.#spec);
  }
}

/** True if each generated token is reported with its log-prob. */
export function reportsLogProbs({ returnLogProbs, topLogProbs }: RequestSpec): boolean {
  return returnLogProbs || topLogProbs > 0;
}

/** True if the log-prob of each generated token is needed: to be reported, or to choose the best sequences or beams. */
export function needsLogProbs(spec: RequestSpec): boolean {
  return reportsLogProbs(spec) || spec.numReturned < spec.numSequences || spec.beams !== null;
}

function copyInto<T extends Int32Array | Float32Array>(target: T, source: T): T {
  target.set(source);
  return target;
}
