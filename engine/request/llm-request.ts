import type { RequestFailure } from '../../callbacks/request-failure.js';
import type { FinishCode } from '../../callbacks/response-batch.js';
import type { ReuseCounts, SharedPrefix } from '../../kvcache/kv-cache-manager.js';
import type { ResumeLimits } from '../../scheduler/tokens/pause.js';
import type { SamplingOutput } from '../packed-call/sampling-batch.js';
import { saltWithAdapter } from '../peft/adapter-fingerprint.js';
import type { AdapterUse } from '../peft/peft-cache-manager.js';
import { BeamSearch } from '../sequences/beam-search.js';
import { type CachedPictures, cachedPictures } from '../sequences/cached-pictures.js';
import { type GeneratedSequence, needsLogProbs, reportsLogProbs } from '../sequences/generated-sequence.js';
import { type ImageSpan, type RequestSpec, wholeSpansOf } from '../sequences/request-spec.js';
import { SampledSequences } from '../sequences/sampled-sequences.js';
import type { GroupChange, SequenceGroup } from '../sequences/sequence-group.js';
import { RequestProgress } from './request-progress.js';
import { ReturnedLogits, returnsRows } from './returned-logits.js';
import { countAccepted } from './verification.js';

const NO_SEQUENCES: readonly GeneratedSequence[] = [];

/**
 * A request in the loop. Its sequences hold their tokens, prompt first, each in one array:
 *
 *   before a pause    [ p p p p p | g g g ]           promptLength 5, generatedLength 3
 *   after it          [ p p p p p   g g g | ]         promptLength 8, generatedLength 0, contextPosition 0
 *   beyond the cap    [ p p p p p   g | r r ]         promptLength 6: r r are known, but generated again
 *   with several      [ p p p p p | r r r ]           promptLength 5: which of their tokens would be the prompt's?
 *
 * A request that has generated tokens elsewhere enters as if it had been paused after them.
 *
 *   context --(last chunk: a token)--> generation --(stop condition, cancel, error)--> complete
 *      ^------------------- pause ----------|
 *
 * A draft follows its known tokens until the results of its step have been read; only a request with one
 * sequence can have a draft:
 *
 *   with a draft      [ p p p p p | g g g ] d d d     draftLength 3: rows for the last g and each d
 *
 * Known tokens that are generated again keep their first value and log-prob, are checked against no stop condition
 * and are never sent again.
 */
export class LlmRequest extends RequestProgress {
  readonly spec: RequestSpec;
  /** Number of draft tokens in the step that is packed or runs; 0 whenever schedulers read it. */
  draftLength = 0;
  /** Time at which the request ends, on the loop's clock; Infinity without a limit. */
  readonly deadlineMs: number;
  readonly timing: RequestTiming;
  /** Rows of logits that leave with its responses; null: none are asked for. */
  readonly returned: ReturnedLogits | null;
  readonly reportsLogProbs: boolean;
  /** True if log-probs are computed, even if they are not reported. */
  readonly needsLogProbs: boolean;

  /** Row of PackedBatch.ropeFrequencies, fixed at admission. */
  ropeRow = 0;
  /** Reason why it failed; null unless it did. */
  failure: RequestFailure | null = null;
  /** True if a response with tensors of a sequence has been written. */
  isAnswered = false;
  /** Number of the client's prompt tokens that have been done at some time: a pause does not take it back. */
  contextDone = 0;
  /** The part of it that responses have reported. */
  contextTold = 0;
  /** It has not begun to run yet, or is paused. */
  isWaiting = true;

  /** null: its tokens are drawn. */
  readonly beams: BeamSearch | null;
  /** LoRA adapter of all its sequences, which it uses until it leaves; null: none. */
  override readonly adapter: AdapterUse | null;
  /** Part of the key under which its blocks are kept. */
  readonly #salt: bigint;
  readonly #pictures: CachedPictures;
  readonly #group: SequenceGroup;
  #isStopped = false;

  constructor(spec: RequestSpec, nowMs: number, vocabSize: number, adapter: AdapterUse | null = null) {
    const { requestId, priority, maxNewTokens } = spec;
    super(requestId, { promptLength: spec.promptTokens.length, maxNewTokens, priority });
    this.spec = spec;
    this.adapter = adapter;
    this.#salt = adapter === null ? spec.cacheSalt : saltWithAdapter(spec.cacheSalt, adapter.fingerprint);
    this.#pictures = cachedPictures(spec.promptTable);
    this.deadlineMs = spec.timeLimitMs === null ? Number.POSITIVE_INFINITY : nowMs + spec.timeLimitMs;
    // A clock that was set back must not make an arrival lie in the future.
    this.timing = new RequestTiming(Math.min(spec.arrivalTimeMs ?? nowMs, nowMs));
    this.returned = returnsRows(spec) ? new ReturnedLogits(spec, vocabSize) : null;
    this.reportsLogProbs = reportsLogProbs(spec);
    this.needsLogProbs = needsLogProbs(spec);
    this.beams = spec.beams === null ? null : new BeamSearch(spec, spec.beams, vocabSize);
    this.#group = this.beams ?? new SampledSequences(spec);
  }

  /** Position of the token at a place of the sequence. */
  positionAt(place: number): number {
    return this.spec.positions?.at('time', place) ?? place;
  }

  /** One more than the greatest position that any of its tokens will have. */
  get endPosition(): number {
    return Math.max(this.positionAt(this.finalLength - 1) + 1, this.spec.positions?.end ?? 0);
  }

  get returnsContextRows(): boolean {
    return this.spec.returnContextLogits || this.spec.returnContextLogProbs;
  }

  /** Length of the prompt as the client gave it. */
  get originalPromptLength(): number {
    return this.spec.promptTokens.length;
  }

  /** The sequences that are answered, in the order of the answers. */
  get sequences(): readonly GeneratedSequence[] {
    return this.#group.sequences;
  }

  /** The sequences that still go on, in the order of its block tables. */
  get live(): readonly GeneratedSequence[] {
    return this.#group.live;
  }

  /** Number of sequences that hold blocks side by side. */
  get beamWidth(): number {
    return Math.max(1, this.#group.live.length);
  }

  /** The sequence that each row of logits of the running step is drawn for, in order. */
  get rows(): readonly GeneratedSequence[] {
    return this.drawsToken ? this.#group.rows(this.phase === 'context') : NO_SEQUENCES;
  }

  /** The prompt, up to promptLength; a single sequence's tokens follow it. */
  get tokens(): Int32Array {
    return this.#group.first.tokens;
  }

  /** Keys rotated by frequencies of the sequence's own fit no other sequence, so then nothing is shared. */
  override get shared(): SharedPrefix | null {
    if (!this.spec.reusesBlocks || this.ropeRow !== 0) return null;
    const { retention } = this.spec;
    const loraId = this.adapter?.taskId ?? null;
    return {
      tokens: this.tokens,
      salt: this.#salt,
      loraId,
      ...(retention === null ? {} : { retention }),
      ...this.#pictures,
    };
  }

  override get wholeSpans(): readonly ImageSpan[] | undefined {
    return wholeSpansOf(this.spec);
  }

  override get isComplete(): boolean {
    return this.#group.live.length === 0 || this.failure !== null;
  }

  /** True if it was ended from outside. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Number of tokens generated again whose value differed from the first time. */
  get replayMismatches(): number {
    return this.sequences.reduce((sum, sequence) => sum + sequence.replayMismatches, 0);
  }

  /** True if it has something that no response has carried yet. */
  get hasNews(): boolean {
    return this.beams?.hasNews ?? this.sequences.some((sequence) => this.isNews(sequence));
  }

  /** True if its prompt is further than responses have reported, and they are to report it. */
  get hasProgress(): boolean {
    return this.spec.returnContextProgress && this.contextDone > this.contextTold;
  }

  /**
   * True if one of its sequences has news. With several sequences, the end of each is news, even before the last one ends.
   */
  isNews(sequence: GeneratedSequence): boolean {
    if (sequence.numGenerated > sequence.numSent) return true;
    return this.spec.numReturned > 1 && sequence.isFinished && !sequence.isEndSent;
  }

  /** False if the step draws a token for the sequence again that is known from before a pause. */
  drawsNewToken(sequence: GeneratedSequence): boolean {
    return this.numTokens === sequence.numKnown;
  }

  /**
   * Number of tokens after numTokens that are known, from before a pause or from elsewhere: the best of
   * drafts.
   */
  get numReplayed(): number {
    return this.#group.first.numKnown - this.numTokens;
  }

  /** Sets a draft: the first `length` of these tokens may come next, and are verified in its next step. */
  setDraft(tokens: Int32Array, length: number): void {
    this.draftLength = this.#group.first.writeDraft(this.numTokens, tokens, length);
  }

  /** Number of its draft's tokens that equal those drawn from `firstRow` on. */
  numAccepted({ tokens: drawn }: SamplingOutput, firstRow: number): number {
    if (this.draftLength === 0) return 0;
    const draft = this.tokens.subarray(this.numTokens, this.numTokens + this.draftLength);
    return countAccepted(draft, drawn, firstRow);
  }

  /**
   * Called once, before the request becomes active: it goes on after the tokens that it has generated
   * elsewhere.
   */
  goOnFromElsewhere(limits: ResumeLimits): void {
    if (!this.isComplete) this.enterPaused(this.#group.first.numFromElsewhere, limits);
  }

  /** Limits cachedTokens to the client's prompt, since the cache may hold more of the sequence. */
  override beginContext(found: ReuseCounts): void {
    super.beginContext(found);
    this.cachedTokens = Math.min(this.cachedTokens, this.originalPromptLength);
  }

  override pause(limits: ResumeLimits): void {
    super.pause(limits);
    this.#group.pause();
  }

  override finishChunk(): void {
    super.finishChunk();
    this.contextDone = Math.max(this.contextDone, Math.min(this.contextPosition, this.originalPromptLength));
    this.returned?.finishContext(this.contextPosition);
  }

  /**
   * Takes the tokens drawn for its `rows`, the first of which is `firstRow` of the output, and evaluates the stop
   * conditions. `fromContext`: they were drawn by the step that ended its context.
   */
  append(output: SamplingOutput, firstRow: number, fromContext: boolean): GroupChange {
    const place = this.numTokens;
    const isLast = this.generatedLength + 1 === this.maxNewTokens;
    const change = this.#group.take({ output, firstRow, place, isLast, fromContext });
    this.generatedLength++;
    if (change.newTokens > 0) this.returned?.keepGeneration();
    return change;
  }

  /**
   * Ends one of its sequences from outside. Returns the parents of the remaining sequences; null: nothing changes for
   * them.
   */
  stopSequence(index: number, reason: FinishCode): readonly number[] | null {
    const parents = this.#group.stopSequence(index, reason);
    if (this.#group.live.length === 0) this.#isStopped = true;
    return parents;
  }

  /** Ends the request from outside. */
  stop(reason: FinishCode): void {
    this.#group.stop(reason);
    this.#isStopped = true;
  }
}

/**
 * Times of a request's events, in milliseconds on the loop's clock; NaN for an event that has not happened.
 *
 *   arrival ---- queue ----> first scheduled ---- context ----> first token ---- generation ----> last token
 */
class RequestTiming {
  readonly arrivalMs: number;
  firstScheduledMs = Number.NaN;
  /** End of the latest step that computed a part of the context. */
  lastContextMs = Number.NaN;
  firstTokenMs = Number.NaN;
  lastTokenMs = Number.NaN;
  /** Number of iterations in which the request ran; those after a pause count too. */
  numIterations = 0;

  constructor(arrivalMs: number) {
    this.arrivalMs = arrivalMs;
  }

  noteScheduled(nowMs: number): void {
    if (this.numIterations === 0) this.firstScheduledMs = nowMs;
    this.numIterations++;
  }

  /** Notes the time of a token that was not known before. */
  noteToken(nowMs: number): void {
    if (Number.isNaN(this.firstTokenMs)) this.firstTokenMs = nowMs;
    this.lastTokenMs = nowMs;
  }
}
