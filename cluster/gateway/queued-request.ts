import type { FinishReason, TokenPiece, TokenRequest, TokenTiming } from '../../callbacks/token-request.js';
import type { Waiting } from '../../host/queue/waiting-queue.js';
import { slicePart } from '../../host/token-parts.js';
import type { PieceQueue } from '../../host/token-stream.js';
import type { ModelCard } from '../nats/beat.js';
import type { Offer } from '../nats/gateway-port.js';
import type { Fall } from '../nats/lease-book.js';
import type { HandOver, WorkItem } from '../nats/messages.js';
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

/** Milliseconds that a request lies in the stream, while workers have room, before it is offered anew. */
const FIRST_PATIENCE_MS = 1_000;

/** What was accepted of one sequence. */
interface SequenceSoFar {
  tokens: number[];
  finishReason: FinishReason | null;
}

interface RequestTimes {
  submittedMs: number;
  takenMs: number | null;
  firstTokenMs: number | null;
  lastTokenMs: number | null;
}

/** A request of a gateway, from submission to its last piece, with all that another worker needs to go on with it. */
export class QueuedRequest implements Waiting {
  readonly id: string;
  /** Of the request among those of its gateway. */
  readonly number: number;
  readonly model: string;
  readonly request: TokenRequest;
  readonly pieces: readonly PieceQueue[];
  readonly priority: number;
  readonly key: string;
  readonly weight: number;
  readonly cost: number;
  stage: Stage = 'waiting';
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
  /** Blocks of its prompt that a worker keeps for whoever answers it. */
  handOver: HandOver | null = null;
  /** When its offer will have lain there for so long that it may have gone to a worker that says nothing any more. */
  patientUntilMs = Number.POSITIVE_INFINITY;
  /** Milliseconds of that patience, more with each time. */
  patienceMs = FIRST_PATIENCE_MS;
  /** Why its last attempt failed; null: its worker was lost. */
  lastFailure: string | null = null;
  /**
   * Workers were lost with it, so often that one more would be the last: it may be what kills them. Suspects of a model are tried one
   * after another, so that nobody is blamed for what another one did. It is none once a worker has computed a token of it.
   */
  isSuspect = false;
  /** The worker that had it last and failed, or did not name it any more: it is not chosen for it again before a token of it came. */
  avoids: string | null = null;
  /** null: it is not traced. */
  trace: RequestTrace | null = null;
  /** Stops following the client's signal and the time limit. */
  release: () => void = () => {};
  readonly #packed: PackedRequest;
  readonly #soFar: readonly SequenceSoFar[];
  readonly #times: RequestTimes;
  #cachedTokens = 0;
  /** Most tokens of the prompt that count as cached: all others were computed for this request, by a prefill worker. */
  #mostCachedTokens = Number.POSITIVE_INFINITY;

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
    this.weight = request.queueWeight ?? 1;
    this.cost = request.promptTokens.length + request.maxNewTokens * pieces.length;
    this.waitingSinceMs = nowMs;
    this.deadlineMs = nowMs + (request.timeLimitMs ?? Number.POSITIVE_INFINITY);
    this.#packed = packedRequest(request);
    this.#soFar = pieces.map(() => ({ tokens: [], finishReason: null }));
    this.#times = { submittedMs: nowMs, takenMs: null, firstTokenMs: null, lastTokenMs: null };
  }

  /** What logs and traces call it. */
  get names(): RequestNames {
    return requestNames(this.id, this.request.label);
  }

  /** Some of it has been answered. */
  get hasBegun(): boolean {
    return this.#soFar.some(({ tokens, finishReason }) => tokens.length > 0 || finishReason !== null);
  }

  /** Number of tokens that were accepted, of all sequences. */
  get numTokens(): number {
    return this.#soFar.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  /** Number of tokens computed for it, without those of the prompt that were in a cache. */
  get usedTokens(): number {
    if (!this.hasBegun) return 0;
    return this.numTokens + this.request.promptTokens.length - this.#cachedTokens;
  }

  /** The attempt that only computed its prompt is over: others follow, which answer it. */
  endPrefill(why: Fall): void {
    // A prompt that was lost once is computed by whoever answers it.
    if (why !== 'moved') this.wantsPrefill = false;
    this.isPrefill = false;
    this.pool = null;
  }

  /** A prefill worker has computed the prompt, except for tokens that were in its cache. */
  notePrefilled(cachedTokens: number): void {
    this.#mostCachedTokens = cachedTokens;
  }

  noteTaken(nowMs: number): void {
    this.#times.takenMs ??= nowMs;
  }

  /** A worker with this model answers it from now on: sequences that have not begun are its own alone. */
  noteEngine(model: ModelCard): void {
    const fingerprint = cardFingerprint(model, this.request.adapterName);
    // It will refuse the request: it does not have the adapter.
    if (fingerprint === null) return;
    for (const [i, queue] of this.pieces.entries()) {
      const { tokens, finishReason } = this.#soFar[i]!;
      if (finishReason !== null) continue;
      const before = tokens.length === 0 ? [] : (queue.engines ?? []);
      if (before.at(-1) !== fingerprint) queue.engines = [...before, fingerprint];
    }
  }

  /** The piece has what was asked for beside its tokens. */
  hasAsked(piece: TokenPiece): boolean {
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
    const soFar = this.#soFar[sequence]!;
    const before = soFar.tokens.length;
    if (skip > 0 && !isRepeated(soFar.tokens, piece.tokens.subarray(0, skip))) return false;
    const fresh = skip === 0 ? piece : { ...piece, ...slicePart(piece, skip, piece.tokens.length) };
    for (const token of fresh.tokens) soFar.tokens.push(token);
    soFar.finishReason = piece.finishReason;
    if (piece.cachedTokens !== undefined)
      this.#cachedTokens = Math.min(piece.cachedTokens, this.#mostCachedTokens);
    if (fresh.tokens.length > 0) {
      this.isSuspect = false;
      this.avoids = null;
      this.#times.firstTokenMs ??= nowMs;
      this.#times.lastTokenMs = nowMs;
    }
    this.pieces[sequence]!.pushPiece(this.#asSeenHere(fresh, before > 0));
    return true;
  }

  /** The same for a piece of nothing but tokens, as nearly all are. */
  pushTokens(sequence: number, piece: TokenPiece, skip: number, nowMs: number): boolean {
    const { tokens } = piece;
    const soFar = this.#soFar[sequence]!;
    if (skip > 0 && !isRepeated(soFar.tokens, tokens.subarray(0, skip))) return false;
    for (let i = skip; i < tokens.length; i++) soFar.tokens.push(tokens[i]!);
    this.#times.firstTokenMs ??= nowMs;
    this.#times.lastTokenMs = nowMs;
    const fresh = skip === 0 ? piece : { tokens: tokens.subarray(skip), finishReason: null };
    this.pieces[sequence]!.pushTokens(fresh);
    return true;
  }

  /** The piece with the times of this side, and without what was told before. */
  #asSeenHere(piece: TokenPiece, hasBegun: boolean): TokenPiece {
    const seen = { ...piece };
    if (hasBegun) {
      delete seen.contextLogits;
      delete seen.contextLogProbs;
      delete seen.contextTopTokens;
      delete seen.contextTopLogProbs;
      delete seen.contextProgress;
      delete seen.cachedTokens;
    } else if (seen.cachedTokens !== undefined) seen.cachedTokens = this.#cachedTokens;
    if (piece.timing !== undefined) seen.timing = this.#timing(piece.timing);
    return seen;
  }

  #timing(ofWorker: TokenTiming): TokenTiming {
    const { submittedMs, takenMs, firstTokenMs, lastTokenMs } = this.#times;
    const since = (ms: number | null) => (ms === null ? null : ms - submittedMs);
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
   * The request as it is offered. Its sequences go on behind their tokens, or begin anew where that is not possible:
   * what was sent before is then not sent again.
   * @param ended sequences that nobody wants more of
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
      ...(this.trace?.context ?? {}),
    };
    if (!this.hasBegun || this.#beginsAnew(ended)) {
      return { ...item, request, known: this.#soFar.map(() => 0) };
    }
    return {
      ...item,
      request: { ...request, knownOutputIds: this.#known() },
      known: this.#soFar.map(({ tokens }) => tokens.length),
    };
  }

  /** What an engine that knows tokens could not go on with, or would not tell any more, is begun anew. */
  #beginsAnew(ended: readonly number[]): boolean {
    const { beams, streaming = true, mirostat = 0, ...asked } = this.request;
    if ((beams?.width ?? 1) > 1 || !streaming || mirostat > 0) return true;
    const isOfPrompt = asked.returnContextLogits || asked.returnContextLogProbs;
    const { tokens, finishReason } = this.#soFar[0]!;
    const isTold = tokens.length > 0 || finishReason !== null || ended.includes(0);
    return isOfPrompt === true && !isTold;
  }

  /** Tokens of each sequence, those that the client knew before among them. */
  #known(): Int32Array[] {
    const { knownOutputIds: given = [], endTokenIds = [] } = this.request;
    return this.#soFar.map(({ tokens, finishReason }, i) => {
      const all = [...(given[i] ?? []), ...tokens];
      // A sequence that its end token has ended does not have it: it tells the engine that there is nothing to do.
      const endId = endTokenIds[0];
      if (finishReason === 'stop' && endId !== undefined && !this.#endsByStopWord(all)) all.push(endId);
      return Int32Array.from(all);
    });
  }

  #endsByStopWord(tokens: readonly number[]): boolean {
    const { stopWords = [] } = this.request;
    return stopWords.some((word) =>
      word.every((token, i) => tokens[tokens.length - word.length + i] === token),
    );
  }
}

function isRepeated(tokens: readonly number[], repeated: Int32Array): boolean {
  const start = tokens.length - repeated.length;
  return repeated.every((token, i) => tokens[start + i] === token);
}
