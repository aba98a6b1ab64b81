import { input, says } from '../../base/named-text.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import { MAX_FORCED_TOKENS } from '../guided/forced-tokens.js';
import { type GuideFailure, type GuideRequest, wordsOfMask } from '../guided/guide-messages.js';
import type { LlmRequest } from '../request/llm-request.js';

/** `isInvalid`: the guide is at fault, and not the thread that follows it. */
export function guideFailure(error: string, isInvalid: boolean): RequestFailure {
  return failure(isInvalid ? 'guide' : 'internal', error, isInvalid ? 'guided_decoding_guide' : null);
}

/** A request with a guide, and the state of its masks in the loop. */
export class GuidedRequest {
  readonly request: LlmRequest;
  /** The thread's number of its first sequence; the others follow. */
  readonly first: number;
  /** True once the thread has read its guide. */
  isOpen = false;
  /** Reason why it cannot be guided (any more). */
  failure: RequestFailure | null = null;
  /** The step in which its masks were last asked for. */
  step = -1;
  /** True if the request's masks came too late: the next ones are asked for before it is scheduled. */
  isSlow = false;
  /** Number of looks for masks that were asked for before the request was scheduled. */
  looks = 0;
  /** Tokens forced after those that the step may draw: position, token, count and tokens, for each. */
  forced: Int32Array[] = [];
  /** Number of these tokens that are worth a row, at most. */
  reach = MAX_FORCED_TOKENS;
  /** Number of threads that died while they had its guide, and of those that died while busy with it. */
  deaths = 0;
  strikes = 0;
  readonly #vocabSize: number;
  readonly #numRows: number;
  /** Number of tokens of each sequence that the thread knows. */
  #numKnown: number[];
  /** The request's masks: a row for each sequence, followed by one for each token of a draft. */
  #masks: Int32Array | null = null;
  /** Memory that the thread writes masks to from the next request on. */
  #nextMasks: SharedArrayBuffer | null = null;
  /** Number of tokens after which the present or requested masks apply; -1: none. */
  #end = -1;
  /** Sequences whose masks have not come yet. */
  readonly #missing = new Set<number>();

  constructor(request: LlmRequest, first: number, vocabSize: number, canDraft: boolean) {
    this.request = request;
    this.first = first;
    this.#vocabSize = vocabSize;
    this.#numRows = this.count + (canDraft && this.count === 1 ? MAX_FORCED_TOKENS : 0);
    this.#numKnown = Array.from({ length: this.count }, () => 0);
  }

  get count(): number {
    return this.request.spec.numSequences;
  }

  /** Number of tokens that its sequences have now. */
  get end(): number {
    return this.request.numTokens - this.request.originalPromptLength;
  }

  /** True if the masks after its newest tokens have come. */
  get hasMasks(): boolean {
    return this.isAsked && this.#missing.size === 0;
  }

  /** True if the masks after its newest tokens were asked for. */
  get isAsked(): boolean {
    return this.#end === this.end;
  }

  /** Request by which a new thread reads its guide. Masks that have come stay. */
  opening(): GuideRequest {
    const { guide, endingTokens: endTokens } = this.request.spec;
    const bytes = 4 * wordsOfMask(this.#vocabSize) * this.#numRows;
    this.#nextMasks = new SharedArrayBuffer(bytes);
    this.isOpen = false;
    if (!this.hasMasks) this.#end = -1;
    this.#missing.clear();
    this.#numKnown = this.#numKnown.map(() => 0);
    const { first, count } = this;
    return { type: 'open', first, count, guide: guide!, endTokens, masks: this.#nextMasks };
  }

  /** Notes that the guide has been read, and the masks in front of the first tokens have come. */
  noteOpened(): void {
    this.isOpen = true;
    if (this.hasMasks || this.end > 0) return;
    this.#takeNextMasks();
    this.#end = 0;
  }

  noteMask(step: number, sequence: number): void {
    if (this.step === step) this.#missing.delete(sequence);
  }

  /**
   * Notes that one of its sequences cannot be guided any more. Tokens known from elsewhere may not follow the guide.
   */
  noteFailure({ sequence, error, isInvalid, stray }: GuideFailure): void {
    const index = sequence - this.first;
    const known = this.request.spec.known?.[index]?.tokens.length ?? 0;
    this.failure ??=
      stray === undefined || stray.place >= known
        ? guideFailure(error, isInvalid)
        : failure(
            'invalid',
            says`${input('known_output_ids')} holds ${stray.token} at [${index}, ${stray.place}], which does not follow the guide.`,
            'known_output_ids',
          );
  }

  /** Asks for the masks after its newest tokens: appends the request to `entries`. */
  ask(step: number, jumps: boolean, entries: number[]): void {
    const { request, end } = this;
    const { draftLength } = request;
    this.#takeNextMasks();
    this.step = step;
    this.forced = [];
    this.#end = end;
    this.#missing.clear();
    for (const sequence of request.live) {
      const known = this.#numKnown[sequence.index]!;
      // The sequence went back and generates again from here, so the thread follows it from its beginning.
      const position = known <= end ? known : 0;
      const number = this.first + sequence.index;
      entries.push(number, position, end - position, draftLength, jumps ? 1 : 0);
      for (let place = position; place < end + draftLength; place++)
        entries.push(sequence.tokens[request.originalPromptLength + place]!);
      this.#numKnown[sequence.index] = end;
      this.#missing.add(number);
    }
  }

  /** Copies the mask of a row of one of its sequences. */
  copyMask(sequence: number, ahead: number, into: Int32Array, at: number): void {
    const width = wordsOfMask(this.#vocabSize);
    const row = sequence + ahead;
    into.set(this.#masks!.subarray(row * width, (row + 1) * width), at * width);
  }

  #takeNextMasks(): void {
    if (this.#nextMasks === null) return;
    this.#masks = new Int32Array(this.#nextMasks);
    this.#nextMasks = null;
  }
}
