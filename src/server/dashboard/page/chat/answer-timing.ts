import type { PromptFigures } from './prompt-figures.js';

/** Milliseconds of an answer below which its times show packets arriving, and not tokens being made. */
const SHORTEST_MS = 20;

/** Counts and times an answer as the reader sees it, from the moment of the question. In milliseconds. */
export class AnswerTiming {
  readonly #sentMs: number;
  #firstMs: number | null = null;
  #lastMs: number;
  #pieces = 0;
  #tokens: number | null = null;
  #thoughtFromMs: number | null = null;
  /** null: it still thinks. */
  #thoughtToMs: number | null = null;
  /** What the server said of the prompt by now. */
  readonly prompt: PromptFigures = {};

  constructor(sentMs: number) {
    this.#sentMs = sentMs;
    this.#lastMs = sentMs;
  }

  /** Notes a piece of text, which is one token as a rule. @param isThought true of reasoning */
  notePiece(nowMs: number, isThought = false): void {
    if (isThought) this.#thoughtFromMs ??= nowMs;
    else if (this.#thoughtFromMs !== null) this.#thoughtToMs ??= nowMs;
    this.#firstMs ??= nowMs;
    this.#lastMs = nowMs;
    this.#pieces++;
  }

  /** Notes the server's count of tokens. */
  noteTokens(tokens: number): void {
    this.#tokens = tokens;
  }

  /** Time from the first piece of reasoning to the first after it, or to the last piece; null: there is no reasoning. */
  get thoughtMs(): number | null {
    return this.#thoughtFromMs === null ? null : (this.#thoughtToMs ?? this.#lastMs) - this.#thoughtFromMs;
  }

  get isThinking(): boolean {
    return this.#thoughtFromMs !== null && this.#thoughtToMs === null;
  }

  get firstTokenMs(): number | null {
    return this.#firstMs === null ? null : this.#firstMs - this.#sentMs;
  }

  /** Number of tokens so far: the server's count where there is one. */
  get tokens(): number {
    return this.#tokens ?? this.#pieces;
  }

  get isCounted(): boolean {
    return this.#tokens !== null;
  }

  /**
   * Pace of generation: tokens after the first, by the time after it. For an answer so short that it came at once, all
   * tokens by the whole time.
   */
  get tokensPerSecond(): number | null {
    if (this.#firstMs === null) return null;
    const generationMs = this.#lastMs - this.#firstMs;
    if (generationMs >= SHORTEST_MS && this.tokens > 1) return ((this.tokens - 1) * 1000) / generationMs;
    const wholeMs = this.#lastMs - this.#sentMs;
    return wholeMs > 0 ? (this.tokens * 1000) / wholeMs : null;
  }
}

/** Text of a duration: `12 ms`, `340 ms`, `1.25 s`. */
export function milliseconds(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 9_950 ? 2 : 1)} s`;
}

/** What is said of reasoning: `Thought for 3.2 s`. @param ms null: not known */
export function thoughtWords(ms: number | null): string {
  return ms === null ? 'Reasoning' : `Thought for ${(ms / 1000).toFixed(1)} s`;
}
