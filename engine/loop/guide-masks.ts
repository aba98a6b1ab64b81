import type { RequestFailure } from '../../callbacks/request-failure.js';
import type { TokenMasks } from '../decoding/sampling-batch.js';
import { wordsOfMask } from '../guided/guide-messages.js';
import type { LlmRequest } from '../request/llm-request.js';

/** The masks of a call's rows. Made when a call first has a guided row. */
export class GuideMasks {
  /** Rows of a call at most. */
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

/** What waiting for masks takes and gives. */
export interface MaskWait {
  masks: GuideMasks;
  /** What the forward took. */
  forwardMs: number;
  /** Requests whose masks are not there yet. */
  late: Set<LlmRequest>;
  failures: Map<LlmRequest, RequestFailure>;
}
