import type { RequestFailure } from '../../callbacks/request-failure.js';
import { wordsOfMask } from '../guided/guide-messages.js';
import type { TokenMasks } from '../packed-call/sampling-batch.js';
import type { LlmRequest } from '../request/llm-request.js';

/** Masks of a call's rows. The memory is taken when a call first has a guided row. */
export class GuideMasks {
  /** Most rows of a call. */
  readonly #maxRows: number;
  #masks: TokenMasks | null = null;

  constructor(maxRows: number) {
    this.#maxRows = maxRows;
  }

  of(vocabSize: number): TokenMasks {
    this.#masks ??= {
      words: new Int32Array(wordsOfMask(vocabSize) * this.#maxRows),
      maskOfRow: new Int32Array(this.#maxRows),
    };
    return this.#masks;
  }
}

/** Data of a wait for masks, with its results in `late` and `failures`. */
export interface MaskWait {
  masks: GuideMasks;
  /** Milliseconds that the forward took. */
  forwardMs: number;
  /** Requests whose masks have not come yet. */
  late: Set<LlmRequest>;
  failures: Map<LlmRequest, RequestFailure>;
}
