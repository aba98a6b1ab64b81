import { RequestProgress } from '../request-progress.js';

export interface SimulatedArrival {
  requestId: bigint;
  promptLength: number;
  maxNewTokens: number;
  /** 0 to 1, higher first; default 0.5. */
  priority?: number;
  /** Draft tokens of each step, all of them rejected; default 0. */
  draftLength?: number;
  /** Tokens after which it ends by itself, as with an end token; absent: it runs to maxNewTokens. */
  endsAfter?: number;
}

/** A request that has lengths but no tokens: whenever a model would draw one for it, it is one longer. */
export class SimulatedRequest extends RequestProgress {
  readonly beamWidth = 1;
  readonly #originalPromptLength: number;
  readonly #draftLength: number;
  readonly #endsAfter: number;

  constructor(arrival: SimulatedArrival) {
    const { requestId, promptLength, maxNewTokens, priority = 0.5 } = arrival;
    super(requestId, { promptLength, maxNewTokens, priority });
    this.#originalPromptLength = promptLength;
    this.#draftLength = arrival.draftLength ?? 0;
    this.#endsAfter = arrival.endsAfter ?? Number.POSITIVE_INFINITY;
  }

  /** A draft never reaches beyond the last token: there it could not be used. */
  get draftLength(): number {
    return Math.max(0, Math.min(this.#draftLength, this.maxNewTokens - this.generatedLength - 1));
  }

  override get longestDraft(): number {
    return this.#draftLength;
  }

  /** Tokens generated over all its runs. */
  get generated(): number {
    return this.numTokens - this.#originalPromptLength;
  }

  get isComplete(): boolean {
    if (this.phase === 'context') return false;
    return this.generatedLength >= this.maxNewTokens || this.generated >= this.#endsAfter;
  }

  /** One step has run: a chunk of context, whose last one brings a token, or one more token. */
  finishStep(): void {
    const { drawsToken } = this;
    if (this.phase === 'context') this.finishChunk();
    if (drawsToken) this.generatedLength += 1;
  }
}
