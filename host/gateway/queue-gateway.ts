import { says } from '../../base/named-text.js';
import { onAbort } from '../../base/on-abort.js';
import { type GatewayListener, type GatewayPort, OfferError } from '../../callbacks/nats/gateway-port.js';
import { type Fall, LEASE_RULES, LeaseBook, type LeaseRules } from '../../callbacks/nats/lease-book.js';
import {
  type Beat,
  type FailureFrame,
  type FramesMessage,
  type HoldAnswer,
  type HoldMessage,
  modelKey,
  nameOfKey,
  type PieceFrame,
  type PrefilledFrame,
} from '../../callbacks/nats/messages.js';
import { canBePrefilled } from '../../callbacks/nats/prefill-request.js';
import { type RosterWorker, type SilenceLimits, WorkerRoster } from '../../callbacks/nats/worker-roster.js';
import { failure, failureOf, isRequestsFault, messageOfFailure } from '../../callbacks/request-failure.js';
import { checkRange } from '../../callbacks/sampling-params.js';
import {
  HostClosedError,
  RequestError,
  type TokenRequest,
  type TokenStream,
} from '../../callbacks/token-request.js';
import { inferenceRequestOf } from '../token-inputs.js';
import { PieceQueue } from '../token-stream.js';
import { ModelQueue, type QueueLimits } from './model-queue.js';
import { QueuedRequest, type Stage } from './queued-request.js';

export interface QueueGatewayOptions {
  /** Id of this gateway among all. */
  id: string;
  port: GatewayPort;
  rules?: LeaseRules;
  silence: SilenceLimits;
  /** Milliseconds that a request waits for a worker where there is none that could take it. */
  workerWaitMs: number;
  /** A request may go on with a worker that gives other bits than the one that began it. */
  allowsDifferentBits: boolean;
  /** Longest prompt, in tokens, that goes at once to a worker that answers it, though there are prefill workers. */
  maxLocalPrefillLength: number;
  /** Called with each beat of a worker, and with its id when it is lost or has ended. */
  onBeat: (beat: Beat) => void;
  onLost: (worker: string) => void;
  /** Called with what is nobody's answer. */
  onWarning: (message: string) => void;
}

/** Most sequences of one request. */
const MAX_STREAMS = 4096;
/** Milliseconds after which a request that could not be offered is offered again. */
const RETRY_MS = 200;
const NOTHING_KNOWN = 'its worker was lost';

/**
 * The gateway's end of the work queue: requests of all models go to workers, and what workers send becomes the pieces
 * of their streams, each token once.
 *
 *   submit -> ModelQueue (by priority, or fair among keys) -> offer -> stream -> worker
 *                ^                                                      |
 *                '---- attempt + 1, behind the tokens so far <--- lost, failed, moved
 */
export class QueueGateway implements GatewayListener {
  readonly #options: QueueGatewayOptions;
  readonly #book: LeaseBook;
  readonly #roster = new WorkerRoster();
  readonly #requests = new Map<string, QueuedRequest>();
  readonly #models = new Map<string, ModelQueue>();
  /** Number of requests of each pool that are in the stream, or on their way there. */
  readonly #offers = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #nextId = 1;
  #isConnected = true;
  #isClosed = false;
  #onEmpty: (() => void) | null = null;

  constructor(options: QueueGatewayOptions) {
    this.#options = options;
    this.#book = new LeaseBook(options.rules ?? LEASE_RULES);
    const everyMs = Math.max(20, Math.min(250, options.silence.probeAfterMs / 2));
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  get roster(): WorkerRoster {
    return this.#roster;
  }

  /** Requests that have not ended. */
  get size(): number {
    return this.#requests.size;
  }

  /** A model that requests can be submitted to from now on. @param key see modelKey */
  open(key: string, limits: QueueLimits): void {
    this.#models.set(key, new ModelQueue(key, limits));
  }

  /** Workers of a model that are not about to end. */
  workersOf(key: string): RosterWorker[] {
    return this.#roster.ofModel(key).filter(({ isLeaving }) => !isLeaving);
  }

  /** Numbers of a model's requests: those with a worker, and those that wait for one. */
  countsOf(model: string): { running: number; waiting: number } {
    let running = 0;
    let waiting = 0;
    for (const { model: of, stage } of this.#requests.values()) {
      if (of !== model) continue;
      if (stage === 'leased') running++;
      else waiting++;
    }
    return { running, waiting };
  }

  /**
   * Submits a request with one sequence or several, or with beams: see InProcessHost.submitSeveral.
   * @throws QueueFullError, HostClosedError at once
   */
  submit(model: string, asked: TokenRequest): TokenStream[] {
    const queue = this.#models.get(model);
    if (this.#isClosed || queue === undefined) {
      throw new HostClosedError('The gateway is closed and takes no more requests.');
    }
    const nowMs = performance.now();
    queue.checkRoom(asked.queueKey ?? '', nowMs);
    const number = this.#nextId++;
    const id = `${this.#options.id}-${number}`;
    const width = asked.beams?.width ?? 1;
    const numStreams = width > 1 ? width : (asked.numSequences ?? 1);
    // An invalid number is refused below, which needs one stream to say so.
    const count = Number.isInteger(numStreams) ? Math.min(Math.max(1, numStreams), MAX_STREAMS) : 1;
    const tell = (_: string, call: () => unknown) => this.#tell(call);
    const streams = Array.from(
      { length: count },
      (_, i) => new PieceQueue(BigInt(number), asked, () => this.#leave(id, i), tell, i),
    );
    try {
      checkRange(width > 1 ? 'beams.width' : 'numSequences', numStreams, {
        min: 1,
        max: MAX_STREAMS,
        integer: true,
      });
      // What it makes is not needed: it refuses what a worker's host would refuse, in the same words.
      inferenceRequestOf(0n, asked);
      const request = new QueuedRequest(id, model, asked, streams, nowMs);
      const isLong = asked.promptTokens.length > this.#options.maxLocalPrefillLength;
      request.wantsPrefill = isLong && canBePrefilled(asked);
      this.#begin(request, queue);
    } catch (error) {
      for (const stream of streams) stream.fail(RequestError.of(failureOf(error), error));
    }
    return streams;
  }

  #begin(request: QueuedRequest, queue: ModelQueue): void {
    const { id, request: asked, pieces } = request;
    if (asked.signal?.aborted) {
      request.finish('cancelled');
      return;
    }
    const release = asked.signal && onAbort(asked.signal, () => this.#end(request, 'cancelled'));
    const { timeLimitMs } = asked;
    const timer =
      timeLimitMs === undefined ? null : setTimeout(() => this.#end(request, 'timeout'), timeLimitMs);
    request.release = () => {
      release?.();
      if (timer !== null) clearTimeout(timer);
    };
    this.#requests.set(id, request);
    this.#book.add(id, pieces.length);
    queue.push(request);
    this.#pump(queue);
  }

  /** Cancels what has not ended, and takes no more. */
  close(): void {
    this.#isClosed = true;
    for (const request of [...this.#requests.values()]) this.#end(request, 'cancelled');
    clearInterval(this.#timer);
  }

  /** Resolves once all requests of a model have ended. */
  async whenEmpty(model: string): Promise<void> {
    const isEmpty = () => [...this.#requests.values()].every((request) => request.model !== model);
    while (!isEmpty()) {
      await new Promise<void>((resolve) => {
        const before = this.#onEmpty;
        this.#onEmpty = () => {
          before?.();
          resolve();
        };
      });
    }
  }

  /** Ends a model's requests, and forgets it. */
  closeModel(model: string): void {
    this.#models.delete(model);
    for (const request of [...this.#requests.values()]) {
      if (request.model === model) this.#end(request, 'cancelled');
    }
  }

  // What the transport tells.

  onBeat(beat: Beat): void {
    const change = this.#roster.beat(beat, performance.now());
    this.#options.onBeat(beat);
    const queue = this.#models.get(modelKey(beat.model));
    if (change === 'gone') this.#lose(beat.worker, 'moved');
    else if (beat.isLeaving) this.#moveFrom(beat.worker, beat.pool);
    else if (change === 'joined') this.#moveToNew(beat.pool);
    if (queue !== undefined) this.#pump(queue);
  }

  onFrames({ worker, frames, failures, prefilled = [] }: FramesMessage): void {
    this.#roster.heard(worker, performance.now());
    const stale = new Map<string, number>();
    const pumped = new Set<string>();
    for (const frame of frames) {
      if (!this.#onFrame(worker, frame, pumped)) stale.set(frame.id, frame.attempt);
    }
    for (const frame of failures) {
      if (!this.#onFailure(worker, frame, pumped)) stale.set(frame.id, frame.attempt);
    }
    for (const frame of prefilled) {
      if (!this.#onPrefilled(worker, frame)) stale.set(frame.id, frame.attempt);
    }
    for (const [id, attempt] of stale) this.#stop(worker, id, attempt, null);
    for (const model of pumped) this.#pumpModel(model);
  }

  /** False: nobody waits for it. */
  #onFrame(worker: string, frame: PieceFrame, pumped: Set<string>): boolean {
    const { id, sequence, piece } = frame;
    const request = this.#requests.get(id);
    if (request === undefined) return false;
    const verdict = this.#book.accept(worker, {
      ...frame,
      count: piece.tokens.length,
      isEnd: piece.finishReason !== null,
    });
    if (verdict.kind === 'stale') return false;
    if (this.#noteLeased(request, worker)) pumped.add(request.model);
    if (verdict.kind === 'gap') this.#fall(request, 'gap');
    else if (verdict.kind === 'diverged') this.#diverge(request);
    else if (verdict.kind === 'take') {
      // Who answers has fetched what it could.
      this.#release(request);
      if (!request.push(sequence, piece, verdict.skip, performance.now())) this.#diverge(request);
      else if (this.#book.isOver(id)) {
        pumped.add(request.model);
        this.#forget(request);
      }
    }
    return true;
  }

  #onFailure(worker: string, { id, attempt, failure: why }: FailureFrame, pumped: Set<string>): boolean {
    const request = this.#requests.get(id);
    if (request === undefined || !this.#book.take(id, attempt, worker)) return false;
    pumped.add(request.model);
    this.#noteLeased(request, worker);
    if (isRequestsFault(why.kind)) {
      this.#fail(request, RequestError.of(why));
      return true;
    }
    request.lastFailure = messageOfFailure(why);
    this.#fall(request, why.kind === 'ended' ? 'moved' : 'failed');
    return true;
  }

  /** A prompt has been computed: the request goes on to a worker that answers it. */
  #onPrefilled(worker: string, { id, attempt, bytes, numBlocks }: PrefilledFrame): boolean {
    const request = this.#requests.get(id);
    if (request === undefined || !this.#book.take(id, attempt, worker) || !request.isPrefill) return false;
    this.#noteLeased(request, worker);
    const layout = this.#roster.find(worker)?.layout ?? null;
    if (bytes > 0 && layout !== null) request.handOver = { worker, attempt, layout, bytes, numBlocks };
    request.wantsPrefill = false;
    this.#fall(request, 'moved');
    return true;
  }

  onHold({ worker, held }: HoldMessage): HoldAnswer {
    this.#roster.heard(worker, performance.now());
    const ids = new Set<string>();
    const stale: [string, number][] = [];
    const pumped = new Set<string>();
    for (const [id, attempt] of held) {
      const request = this.#requests.get(id);
      if (request === undefined || !this.#book.take(id, attempt, worker)) stale.push([id, attempt]);
      else {
        ids.add(id);
        if (this.#noteLeased(request, worker)) pumped.add(request.model);
      }
    }
    // What it said in between is in this list already: a worker's messages keep their order.
    for (const id of this.#book.missing(worker, ids)) this.#fall(this.#requests.get(id)!, 'gap');
    for (const model of pumped) this.#pumpModel(model);
    return { kind: 'held', stale };
  }

  onDisconnect(): void {
    this.#isConnected = false;
  }

  onReconnect(): void {
    this.#isConnected = true;
    this.#roster.beginAnew(performance.now());
    // The stream may have been lost with its server. What is still there is recognised by its attempt.
    for (const request of this.#requests.values()) {
      if (request.stage === 'offered') void this.#offer(request);
    }
    for (const queue of this.#models.values()) this.#pump(queue);
  }

  // Leases.

  /** True where it has just become one. */
  #noteLeased(request: QueuedRequest, worker: string): boolean {
    if (request.stage === 'leased') return false;
    this.#setStage(request, 'leased');
    request.noteTaken(performance.now());
    this.#roster.noteHeld(worker, 1);
    return true;
  }

  /** Gives the present attempt up, and begins the next. */
  #fall(request: QueuedRequest, why: Fall): void {
    const { id } = request;
    const worker = this.#book.workerOf(id);
    const attempt = this.#book.attemptOf(id);
    const result = this.#book.fall(id, why);
    if (worker !== null) {
      this.#roster.noteHeld(worker, -1);
      // The blocks that it keeps are still wanted.
      const isKept = request.handOver?.worker === worker && request.handOver.attempt === attempt;
      if (why !== 'failed' && !isKept) this.#stop(worker, id, attempt, null);
    }
    request.offer?.withdraw();
    request.offer = null;
    if (result === 'poisoned') {
      this.#fail(request, this.#poisoned(request));
      return;
    }
    this.#setStage(request, 'waiting');
    if (request.isPrefill) request.endPrefill(why);
    request.waitingSinceMs = performance.now();
    const queue = this.#models.get(request.model);
    queue?.pushAgain(request);
    if (queue !== undefined) this.#pump(queue);
  }

  #poisoned({ lastFailure }: QueuedRequest): RequestError {
    const { maxFruitlessAttempts } = this.#options.rules ?? LEASE_RULES;
    const why = `The request was begun ${maxFruitlessAttempts} times, and each time ${lastFailure ?? NOTHING_KNOWN}; it is not tried again.`;
    return RequestError.of(failure('internal', why));
  }

  #diverge(request: QueuedRequest): void {
    const why =
      'Two workers gave other tokens for the request, though they should be equal: its answer cannot go on.';
    this.#options.onWarning(`${why} Request ${request.id}, pool ${request.pool?.fingerprint}.`);
    this.#fail(request, RequestError.of(failure('internal', why)));
  }

  /** A worker is lost, or has ended: what it had goes on elsewhere. */
  #lose(worker: string, why: 'lost' | 'moved'): void {
    this.#roster.remove(worker);
    for (const id of [...this.#book.heldBy(worker)]) this.#fall(this.#requests.get(id)!, why);
    this.#options.onLost(worker);
  }

  /** A worker is to end: what it has moves, if an equal worker is there. Otherwise it may finish it. */
  #moveFrom(worker: string, pool: string): void {
    if (this.#roster.takersOf(pool).length === 0) return;
    for (const id of [...this.#book.heldBy(worker)]) this.#fall(this.#requests.get(id)!, 'moved');
  }

  #moveToNew(pool: string): void {
    for (const worker of this.#roster.list()) {
      if (worker.pool === pool && worker.isLeaving) this.#moveFrom(worker.id, pool);
    }
  }

  // Offers.

  #setStage(request: QueuedRequest, stage: Stage): void {
    const { pool } = request;
    if (pool !== null && isOffer(request.stage)) this.#countOffer(pool.fingerprint, -1);
    request.stage = stage;
    if (pool !== null && isOffer(stage)) this.#countOffer(pool.fingerprint, 1);
  }

  #countOffer(pool: string, change: 1 | -1): void {
    const count = (this.#offers.get(pool) ?? 0) + change;
    if (count === 0) this.#offers.delete(pool);
    else this.#offers.set(pool, count);
  }

  #pumpModel(model: string): void {
    const queue = this.#models.get(model);
    if (queue !== undefined) this.#pump(queue);
  }

  /** Offers what there is room for. */
  #pump(queue: ModelQueue): void {
    const { allowsDifferentBits } = this.#options;
    const next = queue.next(this.#roster, this.#offers, allowsDifferentBits, performance.now());
    for (const { request, pool, isPrefill } of next) {
      request.pool = pool;
      request.isPrefill = isPrefill;
      this.#setStage(request, 'sending');
      void this.#offer(request);
    }
  }

  async #offer(request: QueuedRequest): Promise<void> {
    const { id, pool } = request;
    const attempt = this.#book.attemptOf(id);
    const ended = request.pieces.flatMap((_, i) => (this.#book.isEnded(id, i) ? [i] : []));
    const item = request.workItem(this.#options.id, attempt, ended, performance.now());
    const isCurrent = () => this.#requests.get(id) === request && this.#book.attemptOf(id) === attempt;
    try {
      const offer = await this.#options.port.offer(pool!, item);
      // Cancelled meanwhile, or taken and lost.
      if (!isCurrent()) offer.withdraw();
      else {
        request.offer = offer;
        if (request.stage !== 'sending') return;
        this.#setStage(request, 'offered');
        request.patientUntilMs = performance.now() + request.patienceMs;
      }
    } catch (error) {
      if (isCurrent()) this.#noteNotOffered(request, error);
    }
  }

  #noteNotOffered(request: QueuedRequest, error: unknown): void {
    if (!(error instanceof OfferError) || error.reason === 'large') {
      this.#fail(request, RequestError.of(failureOf(error), error));
      return;
    }
    // The connection comes again by itself, and what is in a full stream is taken.
    const attempt = this.#book.attemptOf(request.id);
    setTimeout(() => {
      if (this.#requests.get(request.id) !== request || request.stage === 'leased') return;
      if (this.#book.attemptOf(request.id) !== attempt) return;
      this.#setStage(request, 'waiting');
      const queue = this.#models.get(request.model);
      queue?.pushAgain(request);
      if (queue !== undefined) this.#pump(queue);
    }, RETRY_MS);
  }

  // Ends.

  #leave(id: string, sequence: number): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    this.#book.leave(id, sequence);
    const worker = this.#book.workerOf(id);
    if (this.#book.isOver(id)) {
      this.#end(request, 'cancelled');
    } else if (worker !== null && (request.request.beams?.width ?? 1) === 1) {
      this.#stop(worker, id, this.#book.attemptOf(id), sequence);
    }
  }

  /** Ends a request without a word of its worker. */
  #end(request: QueuedRequest, reason: 'cancelled' | 'timeout'): void {
    if (!this.#requests.has(request.id)) return;
    this.#dismiss(request);
    request.finish(reason);
  }

  #fail(request: QueuedRequest, error: Error): void {
    this.#dismiss(request);
    request.fail(error);
  }

  /** Forgets a request that somebody may still be working for. */
  #dismiss(request: QueuedRequest): void {
    const { id } = request;
    const worker = this.#book.workerOf(id);
    if (worker !== null) this.#stop(worker, id, this.#book.attemptOf(id), null);
    this.#forget(request);
    this.#pumpModel(request.model);
  }

  #forget(request: QueuedRequest): void {
    const { id } = request;
    const worker = this.#book.workerOf(id);
    if (worker !== null) this.#roster.noteHeld(worker, -1);
    else request.offer?.withdraw();
    this.#setStage(request, 'ended');
    this.#release(request);
    this.#book.remove(id);
    this.#requests.delete(id);
    this.#models.get(request.model)?.settle(request);
    request.release();
    const onEmpty = this.#onEmpty;
    this.#onEmpty = null;
    onEmpty?.();
  }

  /** Nobody fetches its blocks any more. */
  #release(request: QueuedRequest): void {
    const { id, handOver } = request;
    if (handOver === null) return;
    request.handOver = null;
    this.#stop(handOver.worker, id, handOver.attempt, null);
  }

  #stop(worker: string, id: string, attempt: number, sequence: number | null): void {
    this.#options.port.stop(worker, { kind: 'stop', id, attempt, sequence });
  }

  #tell(call: () => unknown): void {
    try {
      call();
    } catch (error) {
      this.#options.onWarning(
        `A listener of pieces failed: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  // Silence.

  #look(): void {
    if (!this.#isConnected) return;
    const nowMs = performance.now();
    const { toProbe, lost } = this.#roster.silent(nowMs, this.#options.silence);
    for (const worker of toProbe) void this.#probe(worker);
    for (const worker of lost) this.#lose(worker, 'lost');
    this.#failStranded(nowMs);
  }

  async #probe(worker: string): Promise<void> {
    const answer = await this.#options.port.probe(worker);
    if (this.#isClosed) return;
    if (answer === null) this.#roster.noteUnanswered(worker);
    else if (answer === 'nobody') {
      if (this.#isConnected && this.#roster.find(worker)?.isProbed) this.#lose(worker, 'lost');
    } else this.onBeat(answer);
  }

  /** Requests that no worker has been there for, for too long, get an error. */
  #failStranded(nowMs: number): void {
    const { workerWaitMs, allowsDifferentBits } = this.#options;
    for (const request of [...this.#requests.values()]) {
      const { stage, pool, model } = request;
      if (stage === 'leased') continue;
      const mayMove = pool === null || !request.hasBegun || allowsDifferentBits;
      const isThere = this.#hasTaker(isOffer(stage) || !mayMove ? pool!.fingerprint : null, model);
      if (isThere) {
        request.waitingSinceMs = nowMs;
        if (stage === 'offered') this.#offerAnew(request, nowMs);
      }
      // Its workers are gone, and others would do.
      else if (stage === 'offered' && mayMove && this.#hasTaker(null, model)) this.#fall(request, 'moved');
      else if (nowMs - request.waitingSinceMs >= workerWaitMs)
        this.#fail(request, noWorker(request, !mayMove));
    }
  }

  /** A worker that is stopped, or cut off, may have got it before anybody knew. */
  #offerAnew(request: QueuedRequest, nowMs: number): void {
    const takers = this.#roster.takersOf(request.pool!.fingerprint);
    if (nowMs < request.patientUntilMs || !takers.some(({ places, held }) => held < places)) return;
    // They may only be slow: it does not become more and more attempts.
    request.patienceMs *= 2;
    this.#fall(request, 'gap');
  }

  /** A worker takes requests for the model. @param pool null: in any pool */
  #hasTaker(pool: string | null, model: string): boolean {
    const workers = pool === null ? this.#roster.ofModel(model) : this.#roster.takersOf(pool);
    return workers.some(({ isLeaving }) => !isLeaving);
  }
}

function noWorker({ model, pool }: QueuedRequest, isBound: boolean): Error {
  if (!isBound)
    return new HostClosedError(`No worker has the model ${nameOfKey(model)} at present; try again later.`);
  return RequestError.of(
    failure(
      'internal',
      says`The answer was begun by a worker that is lost, and no equal worker is left (the same weights, version, instruction set and options: ${pool!.fingerprint}); with --allow-different-bits another one goes on.`,
    ),
  );
}

function isOffer(stage: Stage): boolean {
  return stage === 'sending' || stage === 'offered';
}
