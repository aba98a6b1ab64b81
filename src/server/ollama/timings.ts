import type { TextPiece } from '../../generation/text-generation.js';

/** Durations of an answer as Ollama reports them, in nanoseconds. */
export interface Durations {
  total_duration: number;
  load_duration: number;
  prompt_eval_count: number;
  prompt_eval_duration: number;
  eval_count: number;
  eval_duration: number;
}

const nanoseconds = (ms: number) => Math.max(0, Math.round(ms * 1e6));

/** Times of one answer: from the request, over the model's load and the prompt, to the last token. */
export class Timings {
  readonly #now: () => number;
  readonly #beganMs: number;
  #loadedMs: number;
  #submittedMs: number;
  #firstMs: number | null = null;
  #lastMs: number | null = null;

  /** @param now milliseconds of a clock that only grows */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#beganMs = now();
    this.#loadedMs = this.#beganMs;
    this.#submittedMs = this.#beganMs;
  }

  /** The model is there. */
  noteLoaded(): void {
    this.#loadedMs = this.#now();
  }

  /** The prompt goes to the engine. */
  noteSubmitted(): void {
    this.#submittedMs = this.#now();
  }

  /** Notes a piece. Uses the engine's times where it reports them: they include no waiting for readers. */
  notePiece({ tokens, timing }: Pick<TextPiece, 'tokens' | 'timing'>): void {
    const now = this.#now();
    if (tokens.length > 0) {
      this.#firstMs ??= now;
      this.#lastMs = now;
    }
    const { firstScheduledMs, firstTokenMs, lastTokenMs } = timing ?? {};
    if (firstScheduledMs == null || firstTokenMs == null || lastTokenMs == null) return;
    this.#submittedMs = firstScheduledMs;
    this.#firstMs = firstTokenMs;
    this.#lastMs = lastTokenMs;
  }

  /** Milliseconds since the request came, and those until the model was there. */
  sinceBegin(): Pick<Durations, 'total_duration' | 'load_duration'> {
    return {
      total_duration: nanoseconds(this.#now() - this.#beganMs),
      load_duration: nanoseconds(this.#loadedMs - this.#beganMs),
    };
  }

  durations(promptTokens: number, answerTokens: number): Durations {
    const end = this.#lastMs ?? this.#now();
    const first = this.#firstMs ?? end;
    return {
      ...this.sinceBegin(),
      prompt_eval_count: promptTokens,
      prompt_eval_duration: nanoseconds(first - this.#submittedMs),
      eval_count: answerTokens,
      eval_duration: nanoseconds(end - first),
    };
  }
}
