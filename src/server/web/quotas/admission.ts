import type {
  Admission,
  AnswerCost,
  AnswerTally,
  TalliedAnswer,
  TalliedRequest,
} from '../../../../callbacks/infer/answer-tally.js';
import { added, type KeyUsage, NO_USAGE } from './key-usage.js';

/**
 * A request that was let in, from then until the last of its answers has ended:
 *
 *   let in for prompt + most output ----- begin, tokens, end of each answer -----> over: what it took, at most what it was let in for
 */
export class CountedAdmission implements Admission, AnswerTally {
  readonly #cost: AnswerCost;
  readonly #besides: AnswerTally | undefined;
  readonly #onOver: (usage: KeyUsage) => void;
  #usage: KeyUsage = { ...NO_USAGE, requests: 1 };
  #ended = 0;
  #isOver = false;

  /** @param onOver called once, with what it took; nothing of it where it was not begun */
  constructor(cost: AnswerCost, besides: AnswerTally | undefined, onOver: (usage: KeyUsage) => void) {
    this.#cost = cost;
    this.#besides = besides;
    this.#onOver = onOver;
  }

  get tally(): AnswerTally {
    return this;
  }

  cancel(): void {
    this.#usage = { ...NO_USAGE };
    this.#end();
  }

  begin(request: TalliedRequest): TalliedAnswer {
    const besides = this.#besides?.begin(request);
    const isFirst = request.sharesPrompt !== true;
    const add = (usage: Partial<KeyUsage>) => {
      this.#usage = added(this.#usage, { ...NO_USAGE, ...usage });
    };
    if (isFirst) add({ promptTokens: request.promptTokens });
    let isOver = false;
    return {
      onCachedTokens: (count) => {
        besides?.onCachedTokens(count);
        if (isFirst) add({ cachedTokens: count });
      },
      onTokens: (count) => {
        besides?.onTokens(count);
        add({ completionTokens: count });
      },
      onForgotten: (count) => {
        besides?.onForgotten(count);
        add({ completionTokens: count });
      },
      onEnd: (reason) => {
        if (isOver) return;
        isOver = true;
        besides?.onEnd(reason);
        this.#ended++;
        if (this.#ended === this.#cost.answers) this.#end();
      },
    };
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOver(this.#usage);
  }
}
