/** Below it times tell how packets came, and not how tokens were made. */
const SHORTEST_MS = 20;

/** Counts and times an answer as the reader sees it: from the moment that it was asked for. Milliseconds. */
export class AnswerTiming {
  readonly #sentMs: number;
  #firstMs: number | null = null;
  #lastMs: number;
  #pieces = 0;
  #tokens: number | null = null;

  constructor(sentMs: number) {
    this.#sentMs = sentMs;
    this.#lastMs = sentMs;
  }

  /** Text has come: a token, as a rule. */
  notePiece(nowMs: number): void {
    this.#firstMs ??= nowMs;
    this.#lastMs = nowMs;
    this.#pieces++;
  }

  /** The server has counted. */
  noteTokens(tokens: number): void {
    this.#tokens = tokens;
  }

  get firstTokenMs(): number | null {
    return this.#firstMs === null ? null : this.#firstMs - this.#sentMs;
  }

  /** Tokens so far: the server's count where there is one. */
  get tokens(): number {
    return this.#tokens ?? this.#pieces;
  }

  get isCounted(): boolean {
    return this.#tokens !== null;
  }

  /**
   * The pace of generation: tokens after the first, in the time after it. An answer so short that it came at one go has no
   * such time; its tokens are then those of the whole.
   */
  get tokensPerSecond(): number | null {
    if (this.#firstMs === null) return null;
    const generationMs = this.#lastMs - this.#firstMs;
    if (generationMs >= SHORTEST_MS && this.tokens > 1) return ((this.tokens - 1) * 1000) / generationMs;
    const wholeMs = this.#lastMs - this.#sentMs;
    return wholeMs > 0 ? (this.tokens * 1000) / wholeMs : null;
  }
}

/** `12 ms`, `340 ms`, `1.25 s`. */
export function milliseconds(ms: number): string {
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 9_950 ? 2 : 1)} s`;
}
