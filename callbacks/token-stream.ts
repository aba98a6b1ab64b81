import {
  FINISH_CANCELLED,
  FINISH_LENGTH,
  FINISH_STOP_WORDS,
  FINISH_TIMED_OUT,
} from '../engine/decoding/finish-reason.js';
import type { FinishReason, TokenPiece, TokenRequest, TokenStream, TokenTiming } from './token-request.js';
import type { NamedTensor } from './types.js';

/** What one response adds; parts that nobody has taken yet are put together into one piece. */
interface Part {
  tokens: Int32Array;
  logProbs: Float32Array;
  topTokens: Int32Array;
  topLogProbs: Float32Array;
}

/** The pieces of one request between the host, which pushes, and one consumer, which pulls at its own pace. */
export class PieceQueue implements TokenStream, AsyncIterator<TokenPiece> {
  readonly requestId: bigint;
  readonly #promptLength: number;
  readonly #returnLogProbs: boolean;
  readonly #topLogProbs: number;
  readonly #streaming: boolean;
  /** End tokens that run as stop words; unlike those they are not part of what is returned. */
  readonly #hiddenStops: ReadonlySet<number>;
  readonly #onAbandoned: () => void;
  #parts: Part[] = [];
  #finishReason: FinishReason | null = null;
  #seed: bigint | null = null;
  /** Until it has left with a piece. */
  #cachedTokens: number | null = null;
  #timing: TokenTiming | null = null;
  #error: Error | null = null;
  #isDone = false;
  #waiting: { resolve: (result: IteratorResult<TokenPiece>) => void; reject: (error: Error) => void } | null =
    null;

  /** `onAbandoned` is called when the consumer leaves before the end. */
  constructor(requestId: bigint, request: TokenRequest, onAbandoned: () => void) {
    this.requestId = requestId;
    this.#promptLength = request.promptTokens.length;
    this.#returnLogProbs = request.returnLogProbs ?? false;
    this.#topLogProbs = request.topLogProbs ?? 0;
    this.#streaming = request.streaming ?? true;
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
    const leftEarly = !this.isEnded;
    this.#isDone = true;
    this.#parts = [];
    if (leftEarly) this.#onAbandoned();
    this.#deliver();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Takes the tensors of a response. */
  push(outputs: readonly NamedTensor[], final: boolean): void {
    const tensors = new Map(outputs.map((output) => [output.name, output.data]));
    const code = (tensors.get('finish_reasons') as Int32Array)[0]!;
    const part = this.#read(tensors);
    this.#cachedTokens = (tensors.get('cached_tokens') as Int32Array | undefined)?.[0] ?? this.#cachedTokens;
    if (code === FINISH_STOP_WORDS && this.#hiddenStops.has(part.tokens.at(-1) ?? -1)) this.#dropLast(part);
    if (part.tokens.length > 0) this.#parts.push(part);
    if (final) {
      this.#seed = (tensors.get('random_seed') as BigUint64Array)[0]!;
      this.#timing = timingOf(tensors);
      this.#finishReason = finishReasonOf(code);
    }
    this.#deliver();
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

  #read(tensors: ReadonlyMap<string, NamedTensor['data']>): Part {
    const ids = tensors.get('output_ids') as Int32Array;
    const length = (tensors.get('sequence_length') as Int32Array)[0]!;
    return {
      tokens: this.#streaming ? ids : ids.slice(this.#promptLength, length),
      logProbs: (tensors.get('output_log_probs') as Float32Array | undefined) ?? new Float32Array(0),
      topTokens: (tensors.get('top_token_ids') as Int32Array | undefined) ?? new Int32Array(0),
      topLogProbs: (tensors.get('top_log_probs') as Float32Array | undefined) ?? new Float32Array(0),
    };
  }

  #dropLast(part: Part): void {
    const kept = part.tokens.length - 1;
    part.tokens = part.tokens.slice(0, kept);
    part.logProbs = part.logProbs.slice(0, kept);
    part.topTokens = part.topTokens.slice(0, kept * this.#topLogProbs);
    part.topLogProbs = part.topLogProbs.slice(0, kept * this.#topLogProbs);
  }

  #deliver(): void {
    const waiting = this.#waiting;
    if (waiting === null) return;
    if (this.#isDone) {
      this.#waiting = null;
      waiting.resolve({ done: true, value: undefined });
      return;
    }
    if (this.#parts.length > 0 || this.#finishReason !== null) {
      this.#waiting = null;
      waiting.resolve({ done: false, value: this.#takePiece() });
    } else if (this.#error !== null) {
      this.#waiting = null;
      this.#isDone = true;
      waiting.reject(this.#error);
    }
  }

  #takePiece(): TokenPiece {
    const parts = this.#parts;
    this.#parts = [];
    const piece: TokenPiece = {
      tokens: join(
        Int32Array,
        parts.map((part) => part.tokens),
      ),
      finishReason: this.#finishReason,
    };
    if (this.#cachedTokens !== null) piece.cachedTokens = this.#cachedTokens;
    this.#cachedTokens = null;
    if (this.#returnLogProbs)
      piece.logProbs = join(
        Float32Array,
        parts.map((part) => part.logProbs),
      );
    if (this.#topLogProbs > 0) {
      piece.topTokens = join(
        Int32Array,
        parts.map((part) => part.topTokens),
      );
      piece.topLogProbs = join(
        Float32Array,
        parts.map((part) => part.topLogProbs),
      );
    }
    if (this.#finishReason !== null) {
      this.#isDone = true;
      if (this.#seed !== null) piece.seed = this.#seed;
      if (this.#timing !== null) piece.timing = this.#timing;
    }
    return piece;
  }
}

function timingOf(tensors: ReadonlyMap<string, NamedTensor['data']>): TokenTiming {
  const times = tensors.get('request_times_ms') as Float32Array;
  const [firstScheduledMs, firstTokenMs, lastTokenMs] = Array.from(times, (ms) => (ms < 0 ? null : ms));
  const numIterations = (tensors.get('num_iterations') as Int32Array)[0]!;
  return {
    firstScheduledMs: firstScheduledMs!,
    firstTokenMs: firstTokenMs!,
    lastTokenMs: lastTokenMs!,
    numIterations,
  };
}

function finishReasonOf(code: number): FinishReason {
  if (code === FINISH_LENGTH) return 'length';
  if (code === FINISH_TIMED_OUT) return 'timeout';
  return code === FINISH_CANCELLED ? 'cancelled' : 'stop';
}

/** One array where there is one; a new one of all of them where there are several. */
function join<T extends Int32Array | Float32Array>(Type: new (length: number) => T, arrays: readonly T[]): T {
  if (arrays.length === 1) return arrays[0]!;
  const joined = new Type(arrays.reduce((sum, array) => sum + array.length, 0));
  let offset = 0;
  for (const array of arrays) {
    joined.set(array, offset);
    offset += array.length;
  }
  return joined;
}
