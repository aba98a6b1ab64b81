import type { TokenPiece, TokenRequest, TokenTiming } from '../../callbacks/token-request.js';
import { AnswerSoFar } from '../../host/answer-so-far.js';
import type { Fall } from '../../host/attempt-faults.js';
import type { Waiting } from '../../host/queue/waiting-queue.js';
import type { PieceQueue } from '../../host/token-stream.js';
import type { ModelCard } from '../nats/beat.js';
import type { Offer } from '../nats/gateway-port.js';
import type { HandOver, ItemPicture, WorkItem } from '../nats/messages.js';
import type { PoolName } from '../nats/names.js';
import type { Packable } from '../nats/packet.js';
import { type RequestNames, requestNames } from '../nats/request-names.js';
import { type PackedRequest, packedRequest } from '../nats/request-wire.js';
import { cardFingerprint } from './card-fingerprint.js';
import type { RequestTrace } from './request-trace.js';

/**
 * Where a request of a gateway is:
 *
 *   waiting   here: for its turn, or for a worker
 *   directed  on its way to a worker that was chosen for it
 *   sending   on its way into the stream
 *   offered   in the stream, or with a worker that has not said so yet
 *   leased    with a worker
 *   ended
 */
export type Stage = 'waiting' | 'directed' | 'sending' | 'offered' | 'leased' | 'ended';

/** It lies in the stream, or is on its way there. */
export function isOffer(stage: Stage): boolean {
  return stage === 'sending' || stage === 'offered';
}

/** Milliseconds that a request lies in the stream, while workers have room, before it is offered again. */
const FIRST_PATIENCE_MS = 1_000;

/** NaN: not yet. Plain numbers, since each token notes one: a field that may be null is an object of its own. */
interface RequestTimes {
  submittedMs: number;
  takenMs: number;
  firstTokenMs: number;
  lastTokenMs: number;
}

/**
 * A request of a gateway, from submission to its last piece, with all that another worker needs to continue
 * it.
 */
export class QueuedRequest implements Waiting {
  // What each token asks for comes first, so that it lies together: of thousands of requests nothing else is in a processor's cache.
  readonly id: string;
  readonly answer: AnswerSoFar;
  readonly pieces: readonly PieceQueue[];
  stage: Stage = 'waiting';
  readonly #times: RequestTimes;
  /** The request asks for values besides the tokens. */
  readonly #asksValues: boolean;
  /** It was sent to a worker that reports its cache, and has no token from it yet. */
  awaitsToken = false;
  /**
   * Workers were lost with it, so often that one more would be the last: it may be what kills them. Suspects
   * of a model are tried one after another, so that none is blamed for a loss that another caused. It is none
   * once a worker has computed a token of it.
   */
  isSuspect = false;
  /** Blocks of its prompt that a worker keeps for the one that answers it. */
  handOver: HandOver | null = null;
  /** Of the request among those of its gateway. */
  readonly number: number;
  readonly model: string;
  readonly request: TokenRequest;
  readonly priority: number;
  readonly key: string;
  readonly weight: number;
  readonly cost: number;
  /** Pool that it was offered to; once it has tokens, only this one gives the same bits. */
  pool: PoolName | null = null;
  /** When it began to wait for a worker, on the gateway's clock. */
  waitingSinceMs: number;
  deadlineMs: number;
  offer: Offer | null = null;
  /** Its prompt may be computed by a prefill worker first. */
  wantsPrefill = false;
  /** The present attempt is that. */
  isPrefill = false;
  /** When its offer will have lain there for so long that it may have gone to a worker that says nothing any more. */
  patientUntilMs = Number.POSITIVE_INFINITY;
  /** Milliseconds of that patience, more with each time. */
  patienceMs = FIRST_PATIENCE_MS;
  /** Why its last attempt failed; null: its worker was lost. */
  lastFailure: string | null = null;
  /** The worker that had it last and failed, or did not name it any more: it is not chosen for it again before a token of it came. */
  avoids: string | null = null;
  /** null: it is not traced. */
  trace: RequestTrace | null = null;
  /** Fingerprint of the only engine that may answer it; null: any. */
  readonly pin: string | null;
  /** It is among the requests that its engine was given. */
  isCounted = false;
  /** Its pictures, as a worker receives them; undefined: it has none. */
  readonly #pictures: ItemPicture[] | undefined;
  /** Stops following the client's signal and the time limit. */
  release: () => void = () => {};
  readonly #packed: PackedRequest;

  constructor(
    { id, number }: Pick<QueuedRequest, 'id' | 'number'>,
    model: string,
    request: TokenRequest,
    pieces: readonly PieceQueue[],
    nowMs: number,
  ) {
    this.id = id;
    this.number = number;
    this.model = model;
    this.request = request;
    this.pieces = pieces;
    this.priority = request.priority ?? 0.5;
    this.key = request.queueKey ?? '';
    this.pin = request.engineFingerprint ?? null;
    this.weight = request.queueWeight ?? 1;
    this.cost = request.promptTokens.length + request.maxNewTokens * pieces.length;
    this.waitingSinceMs = nowMs;
    this.deadlineMs = nowMs + (request.timeLimitMs ?? Number.POSITIVE_INFINITY);
    this.#packed = packedRequest(request);
    this.#pictures = request.sentPictures?.map(({ digest, width, height, numBytes }) => ({
      ...{ digest, width, height, numBytes },
    }));
    this.answer = new AnswerSoFar(request, pieces.length);
    const { returnLogProbs, topLogProbs = 0, returnGenerationLogits } = request;
    this.#asksValues = returnLogProbs === true || topLogProbs > 0 || returnGenerationLogits === true;
    this.#times = {
      submittedMs: nowMs,
      takenMs: Number.NaN,
      firstTokenMs: Number.NaN,
      lastTokenMs: Number.NaN,
    };
  }

  /** What logs and traces call it. */
  get names(): RequestNames {
    return requestNames(this.id, this.request.label);
  }

  /** Some of it has been answered. */
  get hasBegun(): boolean {
    return this.answer.hasBegun;
  }

  /** Number of tokens that were accepted, of all sequences. */
  get numTokens(): number {
    return this.answer.numTokens;
  }

  /** Its client has had nothing of what has not ended: it may begin again, in another pool. */
  get mayRestart(): boolean {
    return this.pieces.every((queue) => queue.isOver || queue.mayRestart);
  }

  /** Withdraws what was answered of sequences that have not ended: the next attempt begins them again. */
  restart(): void {
    for (const [i, queue] of this.pieces.entries()) {
      if (!queue.mayRestart) continue;
      this.answer.restart(i);
      queue.restart();
    }
  }

  /** Number of tokens computed for it, without those of the prompt that were in a cache. */
  get usedTokens(): number {
    return this.answer.usedTokens;
  }

  /** The attempt that only computed its prompt is over: others follow, which answer it. */
  endPrefill(why: Fall): void {
    // A prompt that was lost once is computed by the worker that answers it.
    if (why !== 'moved') this.wantsPrefill = false;
    this.isPrefill = false;
    this.pool = null;
  }

  noteTaken(nowMs: number): void {
    if (Number.isNaN(this.#times.takenMs)) this.#times.takenMs = nowMs;
  }

  /** A worker with this model answers it from now on: sequences that have not begun are its own alone. */
  noteEngine(model: ModelCard): void {
    const fingerprint = cardFingerprint(model, this.request.adapterName);
    // It will refuse the request: it does not have the adapter.
    if (fingerprint === null) return;
    for (const [i, queue] of this.pieces.entries()) {
      if (this.answer.isEnded(i)) continue;
      const before = this.answer.lengthOf(i) === 0 ? [] : (queue.engines ?? []);
      if (before.at(-1) !== fingerprint) queue.engines = [...before, fingerprint];
    }
  }

  /** The piece has what the request asked for besides its tokens. */
  hasAsked(piece: TokenPiece): boolean {
    if (!this.#asksValues) return true;
    const { returnLogProbs, topLogProbs = 0, returnGenerationLogits } = this.request;
    if (piece.tokens.length === 0) return true;
    if (returnLogProbs === true && piece.logProbs === undefined) return false;
    if (topLogProbs > 0 && (piece.topTokens === undefined || piece.topLogProbs === undefined)) return false;
    return returnGenerationLogits !== true || piece.generationLogits !== undefined;
  }

  /**
   * Takes the accepted part of a piece. False: the tokens in front of it, which were sent before, are others.
   * @param skip number of its tokens that were sent before
   */
  push(sequence: number, piece: TokenPiece, skip: number, nowMs: number): boolean {
    const seen = this.answer.push(sequence, piece, skip);
    if (seen === null) return false;
    if (seen.tokens.length > 0) {
      this.isSuspect = false;
      this.avoids = null;
      this.#noteTokens(nowMs);
    }
    if (piece.timing !== undefined) seen.timing = this.#timing(piece.timing);
    this.pieces[sequence]!.pushPiece(seen);
    return true;
  }

  /** The same for a piece of nothing but tokens, as nearly all are. */
  pushTokens(sequence: number, piece: TokenPiece, skip: number, nowMs: number): boolean {
    const seen = this.answer.pushTokens(sequence, piece, skip);
    if (seen === null) return false;
    this.#noteTokens(nowMs);
    this.pieces[sequence]!.pushTokens(seen);
    return true;
  }

  #noteTokens(nowMs: number): void {
    if (Number.isNaN(this.#times.firstTokenMs)) this.#times.firstTokenMs = nowMs;
    this.#times.lastTokenMs = nowMs;
  }

  #timing(ofWorker: TokenTiming): TokenTiming {
    const { submittedMs, takenMs, firstTokenMs, lastTokenMs } = this.#times;
    const since = (ms: number) => (Number.isNaN(ms) ? null : ms - submittedMs);
    return {
      ...ofWorker,
      firstScheduledMs: since(takenMs),
      firstTokenMs: since(firstTokenMs),
      lastTokenMs: since(lastTokenMs),
    };
  }

  /** Ends every sequence that has not ended, without a word of a worker. */
  finish(reason: 'cancelled' | 'timeout'): void {
    for (const queue of this.pieces) if (!queue.isEnded) queue.finish(reason);
  }

  fail(error: Error): void {
    for (const queue of this.pieces) if (!queue.isEnded) queue.fail(error);
  }

  /**
   * The request as it is offered. Its sequences continue after their tokens, or start over where that is not
   * possible: what was sent before is then not sent again.
   * @param ended sequences of which the client wants no more
   */
  workItem(gateway: string, attempt: number, ended: readonly number[], nowMs: number): WorkItem {
    const request: Record<string, Packable> = {
      ...this.#packed,
      streaming: this.request.streaming ?? true,
    };
    const left = this.deadlineMs - nowMs;
    if (Number.isFinite(left)) request.timeLimitMs = Math.max(1, Math.ceil(left));
    const item = {
      ...{ kind: 'work' as const, gateway, id: this.id, number: this.number, attempt, ended: [...ended] },
      ...(this.isPrefill ? { isPrefill: true } : {}),
      ...(this.handOver === null ? {} : { handOver: this.handOver }),
      ...(this.#pictures && { pictures: this.#pictures }),
      ...(this.trace?.context ?? {}),
    };
    const known = this.answer.next(ended);
    if (known === null) return { ...item, request, known: this.pieces.map(() => 0) };
    return {
      ...item,
      request: { ...request, knownOutputIds: known },
      known: this.pieces.map((_, i) => this.answer.lengthOf(i)),
    };
  }
}
