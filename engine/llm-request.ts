import type { SharedPrefix } from '../kvcache/kv-cache-manager.js';
import {
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
  type FinishCode,
} from './decoding/finish-reason.js';
import type { SamplingOutput } from './decoding/sampling-batch.js';
import { endsWithStopWord } from './decoding/stop-words.js';
import { RequestProgress } from './request-progress.js';
import type { RequestSpec } from './request-spec.js';
import { RequestTiming } from './request-timing.js';
import { ReturnedLogits, returnsRows } from './returned-logits.js';

const NO_TOKENS = new Int32Array(0);

/**
 * A request in the loop. All its tokens, prompt first, lie in one array:
 *
 *   before a pause    [ p p p p p | g g g ]           promptLength 5, generatedLength 3
 *   after it          [ p p p p p   g g g | ]         promptLength 8, generatedLength 0, contextPosition 0
 *   beyond the cap    [ p p p p p   g | r r ]         promptLength 6: r r are known, but generated again
 *
 *   context --(last chunk: a token)--> generation --(stop condition, cancel, error)--> complete
 *      ^------------------- pause ----------|
 *
 * Known tokens that are generated again keep their first value and log-prob, are checked against no stop condition
 * and are never sent again.
 */
export class LlmRequest extends RequestProgress {
  readonly spec: RequestSpec;
  readonly beamWidth = 1;
  readonly draftLength = 0;
  /** Time after which the request ends, on the loop's clock; Infinity without a limit. */
  readonly deadlineMs: number;
  readonly timing: RequestTiming;
  /** Rows of logits that leave with its responses; null: none are asked for. */
  readonly returned: ReturnedLogits | null;

  /** Row of PackedBatch.ropeFrequencies, fixed at admission. */
  ropeRow = 0;
  finishReason: FinishCode = FINISH_NOT_FINISHED;
  /** Why it failed; empty unless it did. */
  error = '';
  /** Generated tokens that have been handed to a response. */
  numSent = 0;
  /** Sum of the generated tokens' log-probs, in token order. */
  cumLogProb = 0;
  /** Tokens generated again whose value differed from the first time. */
  replayMismatches = 0;

  #tokens: Int32Array;
  #numKnown: number;
  #logProbs: Float32Array;
  #topTokens: Int32Array;
  #topLogProbs: Float32Array;

  constructor(spec: RequestSpec, nowMs: number, vocabSize: number) {
    const { requestId, priority, maxNewTokens } = spec;
    super(requestId, { promptLength: spec.promptTokens.length, maxNewTokens, priority });
    this.spec = spec;
    this.deadlineMs = spec.timeLimitMs === null ? Number.POSITIVE_INFINITY : nowMs + spec.timeLimitMs;
    // A clock that was set back must not make an arrival lie in the future.
    this.timing = new RequestTiming(Math.min(spec.arrivalTimeMs ?? nowMs, nowMs));
    this.returned = returnsRows(spec) ? new ReturnedLogits(spec, vocabSize) : null;
    const room = Math.min(spec.maxNewTokens, 64);
    this.#tokens = new Int32Array(this.promptLength + room);
    this.#tokens.set(spec.promptTokens);
    this.#numKnown = this.promptLength;
    this.#logProbs = new Float32Array(this.reportsLogProbs ? room : 0);
    this.#topTokens = new Int32Array(spec.topLogProbs * room);
    this.#topLogProbs = new Float32Array(spec.topLogProbs * room);
  }

  /** Length of the prompt as the client gave it. */
  get originalPromptLength(): number {
    return this.spec.promptTokens.length;
  }

  /** Generated tokens known so far, over all runs. */
  get numGenerated(): number {
    return this.#numKnown - this.originalPromptLength;
  }

  /** All known tokens, prompt first; longer than they are: read up to originalPromptLength + numGenerated. */
  get tokens(): Int32Array {
    return this.#tokens;
  }

  /** Keys turned by frequencies of the sequence's own fit no other sequence. */
  override get shared(): SharedPrefix | null {
    if (!this.spec.reusesBlocks || this.ropeRow !== 0) return null;
    const { cacheSalt: salt, retention } = this.spec;
    return { tokens: this.#tokens, salt, ...(retention === null ? {} : { retention }) };
  }

  get reportsLogProbs(): boolean {
    return this.spec.returnLogProbs || this.spec.topLogProbs > 0;
  }

  /** One per generated token; valid up to numGenerated where reportsLogProbs. */
  get logProbs(): Float32Array {
    return this.#logProbs;
  }

  /** [numGenerated x topLogProbs]. */
  get topTokens(): Int32Array {
    return this.#topTokens;
  }

  get topLogProbs(): Float32Array {
    return this.#topLogProbs;
  }

  override get isComplete(): boolean {
    return this.finishReason !== FINISH_NOT_FINISHED || this.error !== '';
  }

  /** Tokens that may not be drawn now: below minLength all that would end the generation. */
  get bannedTokens(): Int32Array {
    const generated = this.numTokens - this.originalPromptLength;
    return generated < this.spec.sampling.minLength ? this.spec.endingTokens : NO_TOKENS;
  }

  /** False where the step draws a token again that is known from before a pause. */
  get drawsNewToken(): boolean {
    return this.drawsToken && this.numTokens === this.#numKnown;
  }

  override finishChunk(): void {
    super.finishChunk();
    this.returned?.finishContext(this.contextPosition);
  }

  /** Takes the token drawn in `row` of the output and evaluates the stop conditions. */
  append(output: SamplingOutput, row: number): void {
    const place = this.numTokens;
    const token = output.tokens[row]!;
    if (place < this.#numKnown) {
      if (this.#tokens[place] !== token) this.replayMismatches++;
      this.generatedLength++;
      return;
    }
    if (token === this.spec.endId) {
      this.finishReason = FINISH_END_ID;
      return;
    }
    this.#record(place, output, row);
    this.generatedLength++;
    this.finishReason = this.#stopReason();
  }

  #stopReason(): FinishCode {
    const { sampling, stopWords } = this.spec;
    const longEnough = this.numGenerated >= sampling.minLength;
    if (longEnough && endsWithStopWord(stopWords, this.#tokens, this.originalPromptLength, this.#numKnown)) {
      return FINISH_STOP_WORDS;
    }
    return this.generatedLength === this.maxNewTokens ? FINISH_LENGTH : FINISH_NOT_FINISHED;
  }

  #record(place: number, output: SamplingOutput, row: number): void {
    if (place === this.#tokens.length) this.#grow();
    this.#tokens[place] = output.tokens[row]!;
    this.#numKnown++;
    this.returned?.keepGeneration();
    if (!this.reportsLogProbs) return;
    const index = this.numGenerated - 1;
    const logProb = output.logProbs[row]!;
    this.#logProbs[index] = logProb;
    this.cumLogProb += logProb;
    const width = this.spec.topLogProbs;
    const source = row * output.maxTopLogProbs;
    for (let i = 0; i < width; i++) {
      this.#topTokens[index * width + i] = output.topTokens[source + i]!;
      this.#topLogProbs[index * width + i] = output.topLogProbs[source + i]!;
    }
  }

  /** Doubles the room for generated tokens, so that a long limit costs nothing until it is used. */
  #grow(): void {
    const room = Math.min(this.spec.maxNewTokens, 2 * (this.#tokens.length - this.originalPromptLength));
    this.#tokens = copyInto(new Int32Array(this.originalPromptLength + room), this.#tokens);
    if (!this.reportsLogProbs) return;
    const width = this.spec.topLogProbs;
    this.#logProbs = copyInto(new Float32Array(room), this.#logProbs);
    this.#topTokens = copyInto(new Int32Array(width * room), this.#topTokens);
    this.#topLogProbs = copyInto(new Float32Array(width * room), this.#topLogProbs);
  }
}

function copyInto<T extends Int32Array | Float32Array>(target: T, source: T): T {
  target.set(source);
  return target;
}
