import type { PieceListener, PieceSource } from '../../../callbacks/piece-source.js';

/** Pieces that the engine of a test yields, handed to one listener, one by one. */
export class PumpedPieces<Piece> implements PieceSource<Piece> {
  readonly #pieces: AsyncGenerator<Piece, void, undefined>;
  readonly #onLeft: () => void;
  #resume: (() => void) | null = null;
  #isPaused = false;
  #isLeft = false;

  /** @param onLeft called when the consumer leaves, at the end too. */
  constructor(pieces: AsyncGenerator<Piece, void, undefined>, onLeft: () => void = () => {}) {
    this.#pieces = pieces;
    this.#onLeft = onLeft;
  }

  engines: readonly string[] | undefined;
  /** Always 0: pieces that were not read wait in the engine. */
  readonly numGathered = 0;

  async *[Symbol.asyncIterator](): AsyncGenerator<Piece, void, undefined> {
    try {
      yield* this.#pieces;
    } finally {
      this.leave();
    }
  }

  listen(listener: PieceListener<Piece>): void {
    void this.#pump(listener);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#resume?.();
  }

  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    this.#onLeft();
  }

  async #pump(listener: PieceListener<Piece>): Promise<void> {
    try {
      for await (const piece of this.#pieces) {
        while (this.#isPaused)
          await new Promise<void>((resolve) => {
            this.#resume = resolve;
          });
        if (this.#isLeft) return;
        listener.onPiece(piece);
      }
    } catch (error) {
      listener.onError(error);
    }
  }
}
