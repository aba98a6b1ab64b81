import type { AnswerTally, TalliedAnswer, TalliedRequest } from '../../../callbacks/infer/answer-tally.js';

/** What the access log says of the answers of an exchange; fields that nothing is known of are absent. */
export interface TalliedFields {
  model?: string;
  promptTokens?: number;
  /** Prompt tokens found in the cache. */
  cachedTokens?: number;
  completionTokens?: number;
  /** From the beginning of the exchange to its first token. */
  firstTokenMs?: number;
  /** Several ones, each once, with commas. */
  finishReason?: string;
}

/** Adds up what models compute for one exchange, for its line in the access log. */
export class AccessTally implements AnswerTally {
  readonly #startMs: number;
  readonly #models = new Set<string>();
  readonly #reasons = new Set<string>();
  #promptTokens = 0;
  #cachedTokens = 0;
  #completionTokens = 0;
  #firstMs: number | null = null;
  #running = 0;

  /** @param startMs time of performance.now() at which the exchange began */
  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  begin({ model, promptTokens, sharesPrompt = false }: TalliedRequest): TalliedAnswer {
    this.#models.add(model);
    if (!sharesPrompt) this.#promptTokens += promptTokens;
    this.#running++;
    let isOver = false;
    return {
      onCachedTokens: (count) => {
        if (!sharesPrompt) this.#cachedTokens += count;
      },
      onTokens: (count) => {
        this.#firstMs ??= performance.now();
        this.#completionTokens += count;
      },
      onForgotten: (count) => {
        this.#completionTokens += count;
      },
      onEnd: (reason) => {
        if (isOver) return;
        isOver = true;
        this.#running--;
        this.#reasons.add(reason);
      },
    };
  }

  /** What is known by now. An answer that still runs when its exchange is over has lost its client. */
  fields(): TalliedFields {
    if (this.#models.size === 0) return {};
    const reasons = this.#running > 0 ? new Set([...this.#reasons, 'abort']) : this.#reasons;
    return {
      model: [...this.#models].join(','),
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#completionTokens,
      ...(this.#firstMs === null ? {} : { firstTokenMs: microseconds(this.#firstMs - this.#startMs) }),
      finishReason: [...reasons].join(','),
    };
  }
}

/** Milliseconds to the microsecond: what is finer means nothing. */
export function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
