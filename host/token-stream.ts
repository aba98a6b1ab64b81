import type { PieceListener } from '../callbacks/piece-source.js';
import type {
  ContextProgress,
  FinishReason,
  TokenPiece,
  TokenRequest,
  TokenStream,
  TokenTiming,
} from '../callbacks/token-request.js';
import { GatheredParts } from './gathered-parts.js';
import { partOf, partOptionsOf } from './token-parts.js';

/**
 * Pieces of one request between the host, which pushes, and one consumer. Tokens that the consumer does not take at
 * once gather here, and become one piece when it does, or several where they are many.
 */
export class PieceQueue implements TokenStream, AsyncIterator<TokenPiece> {
  readonly requestId: bigint;
  readonly #onAbandoned: (isWhole: boolean) => void;
  readonly #tellListener: (callback: string, call: () => unknown) => void;
  readonly #gathered: GatheredParts;
  #finishReason: FinishReason | null = null;
  #seed: bigint | null = null;
  /** Values of the prompt, until they have left with a piece. */
  #context: Partial<TokenPiece> | null = null;
  /** How far the prompt is, until that has left with a piece: the newest alone. */
  #progress: ContextProgress | null = null;
  #timing: TokenTiming | null = null;
  #cumLogProb: number | null = null;
  #error: Error | null = null;
  #isDone = false;
  #waiting: { resolve: (result: IteratorResult<TokenPiece>) => void; reject: (error: Error) => void } | null =
    null;
  #listener: PieceListener<TokenPiece> | null = null;
  #isPaused = false;
  /** See PieceSource. */
  engines: readonly string[] | undefined;
  isWaiting: boolean | undefined;

  /**
   * @param onAbandoned called when the consumer leaves before the end; with true where it has all that it wanted
   * @param tell calls a function of the listener, by its name, and must not throw
   */
  constructor(
    requestId: bigint,
    request: TokenRequest,
    onAbandoned: (isWhole: boolean) => void,
    tell: (callback: string, call: () => unknown) => void,
  ) {
    this.requestId = requestId;
    this.#tellListener = tell;
    this.#gathered = new GatheredParts(partOptionsOf(request));
    this.#onAbandoned = onAbandoned;
  }

  get isEnded(): boolean {
    return this.#finishReason !== null || this.#error !== null;
  }

  [Symbol.asyncIterator](): AsyncIterator<TokenPiece> {
    return this;
  }

  next(): Promise<IteratorResult<TokenPiece>> {
    if (this.#waiting !== null) {
      return Promise.reject(
        new Error(`Request ${this.requestId}: next was called before the last call settled.`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#deliver();
    });
  }

  /** Leaves the stream; called by `for await` when its loop is left early. */
  return(): Promise<IteratorResult<TokenPiece>> {
    this.leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  listen(listener: PieceListener<TokenPiece>): void {
    this.#listener = listener;
    this.#deliver();
  }

  get numGathered(): number {
    return this.#gathered.numTokens;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#deliver();
  }

  leave(isWhole = false): void {
    if (this.#isDone) return;
    const leftEarly = !this.isEnded;
    this.#isDone = true;
    this.#gathered.clear();
    if (leftEarly) this.#onAbandoned(isWhole);
    this.#deliver();
  }

  /** Takes new tokens, with the values that were requested besides them. */
  pushTokens(piece: TokenPiece): void {
    if (this.#isDone) return;
    const listener = this.#listener;
    const isNext = this.#gathered.isEmpty && this.#context === null && this.#progress === null;
    if (isNext && listener !== null && !this.#isPaused) {
      this.#tellListener('onPiece', () => listener.onPiece(piece));
    } else {
      this.#gathered.add(piece);
      this.#deliver();
    }
  }

  /** Takes a piece, as a response or another host's stream has given it. */
  pushPiece({ finishReason, seed, timing, cumLogProb, contextProgress, ...piece }: TokenPiece): void {
    if (this.#isDone || this.isEnded) return;
    const { tokens, logProbs, topTokens, topLogProbs, generationLogits, ...context } = piece;
    if (Object.keys(context).length > 0) this.#context = { ...this.#context, ...context };
    if (contextProgress !== undefined) this.#progress = contextProgress;
    if (tokens.length > 0) this.#gathered.add(partOf(piece));
    if (finishReason !== null) {
      this.#finishReason = finishReason;
      this.#seed = seed ?? null;
      this.#timing = timing ?? null;
      this.#cumLogProb = cumLogProb ?? null;
    }
    this.#deliver();
  }

  /** It has ended, or its consumer wants no more of it. */
  get isOver(): boolean {
    return this.#isDone || this.isEnded;
  }

  /** It has not ended, and its consumer can do without what has come. */
  get mayRestart(): boolean {
    return this.#listener?.onRestart !== undefined && !this.isOver;
  }

  /** Withdraws all that has come. To be called where it mayRestart. */
  restart(): void {
    this.#gathered.clear();
    this.#context = null;
    this.#progress = null;
    this.engines = undefined;
    const listener = this.#listener;
    this.#tellListener('onRestart', () => listener?.onRestart?.());
  }

  /** Ends the stream without a response of the engine. */
  finish(reason: FinishReason): void {
    this.#finishReason = reason;
    this.#deliver();
  }

  /** Fails the stream: pieces already pushed are still delivered, then the consumer gets the error. */
  fail(error: Error): void {
    this.#error = error;
    this.#deliver();
  }

  #deliver(): void {
    if (this.#listener !== null) this.#tell(this.#listener);
    else this.#settle();
  }

  #tell(listener: PieceListener<TokenPiece>): void {
    while (this.#hasPiece && !this.#isPaused) {
      const piece = this.#takePiece();
      this.#tellListener('onPiece', () => listener.onPiece(piece));
    }
    // The listener may have paused or left meanwhile.
    const error = this.#error;
    if (error === null || this.#isDone || this.#isPaused) return;
    this.#isDone = true;
    this.#tellListener('onError', () => listener.onError(error));
  }

  #settle(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    if (this.#isDone) {
      this.#waiting = null;
      waiting.resolve({ done: true, value: undefined });
      return;
    }
    if (this.#hasPiece) {
      this.#waiting = null;
      waiting.resolve({ done: false, value: this.#takePiece() });
    } else if (this.#error !== null) {
      this.#waiting = null;
      this.#isDone = true;
      waiting.reject(this.#error);
    }
  }

  get #hasPiece(): boolean {
    if (this.#isDone) return false;
    return !this.#gathered.isEmpty || this.#finishReason !== null || this.#progress !== null;
  }

  #takePiece(): TokenPiece {
    const part = this.#gathered.take();
    const finishReason = this.#gathered.isEmpty ? this.#finishReason : null;
    const piece: TokenPiece = { ...part, ...this.#context, finishReason };
    this.#context = null;
    if (this.#progress !== null) piece.contextProgress = this.#progress;
    this.#progress = null;
    if (finishReason !== null) {
      this.#isDone = true;
      if (this.#seed !== null) piece.seed = this.#seed;
      if (this.#timing !== null) piece.timing = this.#timing;
      if (this.#cumLogProb !== null) piece.cumLogProb = this.#cumLogProb;
    }
    return piece;
  }
}
