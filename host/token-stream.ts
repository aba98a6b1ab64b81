import {
  FINISH_CANCELLED,
  FINISH_LENGTH,
  FINISH_STOP_WORDS,
  FINISH_TIMED_OUT,
} from '../callbacks/finish-reason.js';
import type { PieceListener } from '../callbacks/piece-source.js';
import type {
  FinishReason,
  TokenPiece,
  TokenRequest,
  TokenStream,
  TokenTiming,
} from '../callbacks/token-request.js';
import type { NamedTensor } from '../callbacks/types.js';
import { streams } from './token-inputs.js';
import {
  joinParts,
  numberOf,
  type Part,
  type PartOptions,
  readContext,
  readPart,
  readTiming,
  tensorsOf,
  withoutLast,
} from './token-parts.js';

/** Parts that gather before they are joined. */
const MOST_PARTS = 64;

/**
 * The pieces of one request between the host, which pushes, and one consumer. What the consumer does not take at once gathers
 * here, and is one piece when it does.
 */
export class PieceQueue implements TokenStream, AsyncIterator<TokenPiece> {
  readonly requestId: bigint;
  /** null: its responses carry new tokens only. */
  readonly #promptLength: number | null;
  readonly #options: PartOptions;
  /** End tokens that run as stop words; unlike those they are not part of what is returned. */
  readonly #hiddenStops: ReadonlySet<number>;
  readonly #onAbandoned: (isWhole: boolean) => void;
  readonly #tellListener: (callback: string, call: () => unknown) => void;
  #parts: Part[] = [];
  #finishReason: FinishReason | null = null;
  #seed: bigint | null = null;
  /** What is known of the prompt, until it has left with a piece. */
  #context: Partial<TokenPiece> | null = null;
  #timing: TokenTiming | null = null;
  #cumLogProb: number | null = null;
  #error: Error | null = null;
  #isDone = false;
  #waiting: { resolve: (result: IteratorResult<TokenPiece>) => void; reject: (error: Error) => void } | null =
    null;
  #listener: PieceListener<TokenPiece> | null = null;
  #isPaused = false;

  /**
   * `onAbandoned` is called when the consumer leaves before the end; with true where it has all that it wanted. `tell` calls
   * a function of the listener, by its name, and must not throw.
   */
  constructor(
    requestId: bigint,
    request: TokenRequest,
    onAbandoned: (isWhole: boolean) => void,
    tell: (callback: string, call: () => unknown) => void,
  ) {
    this.requestId = requestId;
    this.#tellListener = tell;
    this.#promptLength = streams(request) ? null : request.promptTokens.length;
    this.#options = {
      returnLogProbs: request.returnLogProbs ?? false,
      topLogProbs: request.topLogProbs ?? 0,
      returnGenerationLogits: request.returnGenerationLogits ?? false,
    };
    this.#hiddenStops = new Set(request.endTokenIds?.slice(1));
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

  /** Called by `for await` when it is left early. */
  return(): Promise<IteratorResult<TokenPiece>> {
    this.leave();
    return Promise.resolve({ done: true, value: undefined });
  }

  listen(listener: PieceListener<TokenPiece>): void {
    this.#listener = listener;
    this.#deliver();
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
    this.#parts = [];
    if (leftEarly) this.#onAbandoned(isWhole);
    this.#deliver();
  }

  /** Takes the tensors of a response; `final`: it is the last one for these pieces. */
  push(outputs: readonly NamedTensor[], final: boolean): void {
    const tensors = tensorsOf(outputs);
    const code = tensors.get('finish_reasons')!.data[0] as number;
    const part = readPart(tensors, this.#promptLength, this.#options);
    const context = readContext(tensors);
    if (context !== null) this.#context = context;
    const endsHidden = code === FINISH_STOP_WORDS && this.#hiddenStops.has(part.tokens.at(-1) ?? -1);
    const shown = endsHidden ? withoutLast(part) : part;
    if (shown.tokens.length > 0 && !this.#isDone) this.#gather(shown);
    if (final) {
      this.#seed = tensors.get('random_seed')!.data[0] as bigint;
      this.#timing = readTiming(tensors);
      if (tensors.has('beam')) this.#cumLogProb = numberOf(tensors, 'cum_log_probs') ?? null;
      this.#finishReason = finishReasonOf(code);
    }
    this.#deliver();
  }

  /** Takes new tokens, with all that was asked for beside them. */
  pushTokens(piece: TokenPiece): void {
    if (this.#isDone) return;
    const listener = this.#listener;
    const isNext = this.#parts.length === 0 && this.#context === null;
    if (isNext && listener !== null && !this.#isPaused) {
      this.#tellListener('onPiece', () => listener.onPiece(piece));
    } else {
      this.#gather(piece);
      this.#deliver();
    }
  }

  /** Ends the stream without a response of the engine. */
  finish(reason: FinishReason): void {
    this.#finishReason = reason;
    this.#deliver();
  }

  /** What has been pushed is still delivered; then the consumer gets the error. */
  fail(error: Error): void {
    this.#error = error;
    this.#deliver();
  }

  /** What nobody takes for long becomes one part: the arrays of a step are small, and each costs more than what it holds. */
  #gather(part: Part): void {
    this.#parts.push(part);
    if (this.#parts.length >= MOST_PARTS) this.#parts = [joinParts(this.#parts, this.#options)];
  }

  #deliver(): void {
    if (this.#listener !== null) this.#tell(this.#listener);
    else this.#settle();
  }

  #tell(listener: PieceListener<TokenPiece>): void {
    if (this.#hasPiece && !this.#isPaused) {
      const piece = this.#takePiece();
      this.#tellListener('onPiece', () => listener.onPiece(piece));
    }
    // The listener may have paused or left.
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
    return !this.#isDone && (this.#parts.length > 0 || this.#finishReason !== null);
  }

  #takePiece(): TokenPiece {
    const parts = this.#parts;
    this.#parts = [];
    const piece: TokenPiece = {
      ...joinParts(parts, this.#options),
      ...this.#context,
      finishReason: this.#finishReason,
    };
    this.#context = null;
    if (this.#finishReason !== null) {
      this.#isDone = true;
      if (this.#seed !== null) piece.seed = this.#seed;
      if (this.#timing !== null) piece.timing = this.#timing;
      if (this.#cumLogProb !== null) piece.cumLogProb = this.#cumLogProb;
    }
    return piece;
  }
}

/** What a response says of the end of its request. */
export function finishReasonIn(outputs: readonly NamedTensor[]): FinishReason {
  const code = outputs.find(({ name }) => name === 'finish_reasons')?.data[0];
  return finishReasonOf(Number(code ?? FINISH_CANCELLED));
}

function finishReasonOf(code: number): FinishReason {
  if (code === FINISH_LENGTH) return 'length';
  if (code === FINISH_TIMED_OUT) return 'timeout';
  return code === FINISH_CANCELLED ? 'cancelled' : 'stop';
}
