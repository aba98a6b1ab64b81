import { input, says } from '../../base/named-text.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import { MAX_FORCED_TOKENS } from '../guided/forced-tokens.js';
import { type GuideFailure, type GuideRequest, wordsOfMask } from '../guided/guide-messages.js';
import type { LlmRequest } from '../request/llm-request.js';

/** `isInvalid`: the guide is at fault, and not the thread that follows it. */
export function guideFailure(error: string, isInvalid: boolean): RequestFailure {
  return failure(isInvalid ? 'guide' : 'internal', error, isInvalid ? 'guided_decoding_guide' : null);
}

/** A request with a guide: what the loop knows of its masks. */
export class GuidedRequest {
  readonly request: LlmRequest;
  /** What the thread calls the first of its sequences; the others follow. */
  readonly first: number;
  /** The thread has read its guide. */
  isOpen = false;
  /** Why it cannot be guided (any more). */
  failure: RequestFailure | null = null;
  /** The step that its masks were last asked for in. */
  step = -1;
  /** The request's masks came too late: the next ones are asked for before it is scheduled. */
  isSlow = false;
  /** Looks for masks that were asked for before it is scheduled. */
  looks = 0;
  /** What is certain behind the tokens that the step may draw: position, token, count and tokens, for each. */
  forced: Int32Array[] = [];
  /** Most of these tokens that are worth a row. */
  reach = MAX_FORCED_TOKENS;
  /** Threads that ended while it had a guide there, and those that ended while they were busy with it. */
  deaths = 0;
  strikes = 0;
  readonly #vocabSize: number;
  readonly #numRows: number;
  /** Tokens of each sequence that the thread knows. */
  #numKnown: number[];
  /** The request's masks: a row for each sequence, and behind it one for each token of a draft. */
  #masks: Int32Array | null = null;
  /** What the thread writes from the next time on that it is asked. */
  #nextMasks: SharedArrayBuffer | null = null;
  /** Tokens behind which the masks stand, or will; -1: nowhere. */
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

  /** Tokens that its sequences have now. */
  get end(): number {
    return this.request.numTokens - this.request.originalPromptLength;
  }

  /** The masks behind its newest tokens are there. */
  get hasMasks(): boolean {
    return this.isAsked && this.#missing.size === 0;
  }

  /** They were asked for. */
  get isAsked(): boolean {
    return this.#end === this.end;
  }

  /** Has a thread that knows nothing of it read its guide. Masks that are there stay. */
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

  /** The guide has been read, and the masks in front of the first tokens are there. */
  noteOpened(): void {
    this.isOpen = true;
    if (this.hasMasks || this.end > 0) return;
    this.#takeNextMasks();
    this.#end = 0;
  }

  noteMask(step: number, sequence: number): void {
    if (this.step === step) this.#missing.delete(sequence);
  }

  /** One of its sequences cannot be guided any more. Tokens that are known from elsewhere may not be the guide's. */
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

  /** Asks for the masks behind its newest tokens: appends what is to be said to `entries`. */
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
      // What was generated beyond this place is generated again: the thread begins at the beginning.
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
