import type { TextPiece, TextRequest } from '../../generation/text-generation.js';
import { choiceSeed, drawSeed, generateText } from '../../generation/text-generation.js';
import type { ObserveRequest, RequestObserver } from '../request-observer.js';
import type { ServedModel } from '../served-model.js';
import { shuttingDown } from './errors.js';

interface Choice {
  index: number;
  pieces: AsyncGenerator<TextPiece, void, undefined>;
  observer: RequestObserver;
}

/**
 * The choices of one HTTP request: prompts x n requests of the engine that live and die together. Choice
 * prompt * n + k answers prompt `prompt` with the k-th seed.
 */
export class ChoiceRun {
  readonly #choices: Choice[] = [];
  readonly #abort = new AbortController();
  readonly #choicesPerPrompt: number;
  #completionTokens = 0;
  #cachedTokens = 0;

  /**
   * Queues every choice, or none: one that is refused takes its neighbours along.
   * @throws InvalidRequestError, QueueFullError.
   */
  constructor(model: ServedModel, requests: readonly TextRequest[], n: number, observe: ObserveRequest) {
    this.#choicesPerPrompt = n;
    try {
      for (const request of requests) {
        const seed = request.seed === undefined ? drawSeed() : BigInt(request.seed);
        for (let k = 0; k < n; k++) {
          const pieces = generateText(model, {
            ...request,
            seed: choiceSeed(seed, k),
            signal: this.#abort.signal,
          });
          const { maxTokens } = request;
          const observer = observe({ promptTokens: request.promptTokens.length, maxTokens });
          this.#choices.push({ index: this.#choices.length, pieces, observer });
        }
      }
    } catch (error) {
      this.abort();
      for (const choice of this.#choices) choice.observer.onEnd('abort');
      throw error;
    }
  }

  get numChoices(): number {
    return this.#choices.length;
  }

  /** Tokens generated so far, by all choices. */
  get completionTokens(): number {
    return this.#completionTokens;
  }

  /** Prompt tokens found in the cache so far, each prompt counted once: by its first choice. */
  get cachedTokens(): number {
    return this.#cachedTokens;
  }

  /** Ends every choice; the engine frees their blocks within one iteration. */
  abort(): void {
    this.#abort.abort();
  }

  /**
   * Runs all choices to their ends. An error of one, or of `onPiece`, ends the others and is thrown when all are done.
   * @param onPiece may return a promise where its reader is behind.
   */
  async consume(onPiece: (choice: number, piece: TextPiece) => Promise<void> | undefined): Promise<void> {
    const failures: unknown[] = [];
    const consumeOne = async (choice: Choice) => {
      try {
        await this.#consumeChoice(choice, onPiece);
      } catch (error) {
        failures.push(error);
        choice.observer.onEnd('error');
        this.abort();
      }
    };
    await Promise.all(this.#choices.map(consumeOne));
    if (failures.length > 0) throw failures[0];
  }

  async #consumeChoice(
    { index, pieces, observer }: Choice,
    onPiece: (choice: number, piece: TextPiece) => Promise<void> | undefined,
  ): Promise<void> {
    for await (const piece of pieces) {
      this.#completionTokens += piece.tokens.length;
      if (piece.cachedTokens !== undefined) {
        observer.onCachedTokens(piece.cachedTokens);
        if (index % this.#choicesPerPrompt === 0) this.#cachedTokens += piece.cachedTokens;
      }
      if (piece.tokens.length > 0) observer.onTokens(piece.tokens.length);
      if (piece.finishReason === 'cancelled') {
        observer.onEnd('abort');
        // Nobody hears the answer of a client that left; any other cancellation is the server's.
        if (this.#abort.signal.aborted) return;
        throw shuttingDown();
      }
      if (piece.finishReason !== null) observer.onEnd(piece.finishReason, piece.timing);
      const behind = onPiece(index, piece);
      if (behind !== undefined) await behind;
    }
  }
}
