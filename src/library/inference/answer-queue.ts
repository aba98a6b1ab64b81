import type { InferListener, InferResponse } from '../../../callbacks/infer/infer-types.js';

interface Waiting {
  response: InferResponse;
  /** Its model may continue. */
  onTaken(): void;
}

/**
 * Answers to one request, taken one after the other: a model with many waits until its latest ones are taken.
 */
export class AnswerQueue implements InferListener {
  readonly #waiting: Waiting[] = [];
  #end: { error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  response(response: InferResponse): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ response, onTaken: resolve });
      this.#wake?.();
    });
  }

  end(): void {
    this.#end ??= { error: null };
    this.#wake?.();
  }

  fail(error: Error): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  /** The next answer; null: there is none any more. @throws the error with which the request ended */
  async next(): Promise<InferResponse | null> {
    while (this.#waiting.length === 0 && this.#end === null) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const next = this.#waiting.shift();
    next?.onTaken();
    if (next !== undefined) return next.response;
    if (this.#end!.error !== null) throw this.#end!.error;
    return null;
  }

  /** The rest is not taken. */
  leave(): void {
    this.end();
    for (const { onTaken } of this.#waiting.splice(0)) onTaken();
  }
}
