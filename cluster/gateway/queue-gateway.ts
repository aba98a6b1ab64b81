import { crc32 } from 'node:zlib';
import { messageOf } from '../../base/error-text.js';
import { says } from '../../base/named-text.js';
import { onAbort } from '../../base/on-abort.js';
import { failure, failureOf, isRequestsFault, messageOfFailure } from '../../callbacks/request-failure.js';
import { checkRange } from '../../callbacks/sampling-params.js';
import {
  HostClosedError,
  MAX_SEQUENCES,
  RequestError,
  type TokenPiece,
  type TokenRequest,
  type TokenStream,
} from '../../callbacks/token-request.js';
import { takenRequest } from '../../host/host-entry.js';
import type { QueueLimits } from '../../host/queue/queue-room.js';
import { PieceQueue } from '../../host/token-stream.js';
import { checkTokenValues } from '../../host/token-values.js';
import { type Beat, nameOfKey } from '../nats/beat.js';
import type { CacheChange } from '../nats/cache-messages.js';
import type { GatewayListener, GatewayPort } from '../nats/gateway-port.js';
import { NO_BLOCKS } from '../nats/kept-blocks.js';
import type { Frame } from '../nats/lease-book.js';
import {
  type BlocksAnswer,
  type FailureFrame,
  type FramesMessage,
  type HoldAnswer,
  type HoldMessage,
  type PictureMessage,
  type PieceFrame,
  type PrefilledFrame,
  requestId,
} from '../nats/messages.js';
import { canBePrefilled } from '../nats/prefill-request.js';
import type { RosterPool, RosterWorker } from '../nats/roster-pool.js';
import { readRuns, type TokenRun } from '../nats/token-runs.js';
import { offersFor, ROSTER_IS_FULL, WorkerRoster } from '../nats/worker-roster.js';
import type { EngineShare, ModelRouting } from '../routing/model-routing.js';
import type { PoolWeights } from '../routing/pool-weights.js';
import { Attempts, type AttemptsOptions, type RequestCounts } from './attempts.js';
import { CacheRoutes, type CacheRoutesOptions } from './cache-routes.js';
import { countFingerprints, isNameOfEngine } from './card-fingerprint.js';
import { ModelQueue } from './model-queue.js';
import { QueuedRequest } from './queued-request.js';
import { SilenceWatch, type SilenceWatchOptions } from './silence-watch.js';
import { UnusedPrefill, unusedPrefillPools } from './unused-prefill.js';

export interface QueueGatewayOptions extends AttemptsOptions, Omit<SilenceWatchOptions, 'onBeat' | 'onLost'> {
  port: GatewayPort;
  /** How new requests are shared among engines of one model; default: wherever there is room. */
  weights?: PoolWeights;
  /** Requests are sent where they are cached. Absent: any worker may take a request. */
  routing?: CacheRoutesOptions;
  /** Called with a worker at each of its beats, and with its id when it is lost, or has ended (moved). */
  onBeat: (worker: RosterWorker) => void;
  onLost: (worker: string, why: 'lost' | 'moved') => void;
}

/** Ids of requests whose tokens of a worker have no receiver, with their attempts. */
type Stale = [id: string, attempt: number][];

/** Most workers that are asked at once what their pool is. */
const MAX_ASKED = 8;

/**
 * The gateway's end of the work queue: requests of all models go to workers, and what workers send becomes the pieces
 * of their streams, each token once.
 *
 *   submit -> ModelQueue (by priority, or fair among keys) -> offer -> stream -> worker
 *                ^                                                      |
 *                '---- attempt + 1, after the tokens so far <---- lost, failed, moved
 *
 *   QueueGateway   what clients ask, and what workers say      SilenceWatch   workers and requests that wait too long
 *   Attempts       offers, leases and ends
 */
export class QueueGateway implements GatewayListener {
  readonly roster: WorkerRoster;
  readonly #options: QueueGatewayOptions;
  readonly #attempts: Attempts;
  readonly #silence: SilenceWatch;
  /** null: any worker may take a request. */
  readonly #routes: CacheRoutes | null;
  readonly #unusedPrefill: UnusedPrefill;
  #nextId = 1;
  /** Pools that no worker has described yet: one worker of each is being asked. */
  readonly #askedPools = new Set<string>();
  /** Workers were left out, and the log says so. */
  #hasRefused = false;
  #isClosed = false;

  constructor(options: QueueGatewayOptions) {
    this.#options = options;
    const { routing } = options;
    const routes =
      routing === undefined ? null : new CacheRoutes(routing, (worker) => this.roster.reckon(worker));
    this.#routes = routes;
    this.roster = new WorkerRoster({ offersOf: (worker) => routes?.reckon(worker) ?? offersFor(worker) });
    this.#attempts = new Attempts(options, this.roster, this.#routes);
    this.#unusedPrefill = new UnusedPrefill(options.onWarning);
    this.#silence = new SilenceWatch(
      { ...options, onBeat: (beat) => this.onBeat(beat), onLost: (worker) => this.#lose(worker, 'lost') },
      this.roster,
      this.#attempts,
    );
  }

  /** Requests that have not ended. */
  get size(): number {
    return this.#attempts.requests.size;
  }

  /** A model that requests can be submitted to from now on. @param key see modelKey */
  open(key: string, limits: QueueLimits): void {
    this.#attempts.models.set(key, new ModelQueue(key, limits, this.#options.weights));
  }

  /** Pools of a model with workers that answer requests and are not about to end. */
  poolsOf(key: string): RosterPool[] {
    return this.roster.poolsOf(key).filter(({ takers }) => takers.size > 0);
  }

  /** Number of the workers in them. */
  numWorkersOf(key: string): number {
    return this.roster.numTakersOf(key);
  }

  /** Number of a model's prefill workers whose blocks no answering worker can use. */
  numUnusedPrefillersOf(key: string): number {
    return unusedPrefillPools(this.roster, key).reduce((sum, { takers }) => sum + takers.size, 0);
  }

  /** Requests that the engines of a model were given, by their fingerprints, and their weights. */
  sharesOf(key: string): ReadonlyMap<string, EngineShare> {
    const pools = this.roster.poolsOf(key);
    return this.#attempts.models.get(key)?.aims.shares(pools) ?? new Map();
  }

  /**
   * Lets requests wait for an engine that they name and whose workers were there before: one may come again.
   * @param engine its fingerprint, with the adapter of the name where there is one @throws RequestError where no worker has had it
   */
  checkEngine(model: string, engine: string, adapterName?: string): void {
    const met = [...this.roster.poolsOf(model).map((pool) => pool.model), ...this.roster.goneOf(model)];
    if (met.some((card) => isNameOfEngine(engine, card, adapterName))) return;
    const engines = [...countFingerprints(this.poolsOf(model)).keys()];
    const known =
      engines.length === 0 ? 'no worker is there at present' : `its workers have ${engines.join(', ')}`;
    const why = says`There is no engine ${engine} of the model ${nameOfKey(model)}: ${known}.`;
    throw RequestError.of(failure('invalid', why));
  }

  /** Numbers of a model's requests: those with a worker, and those that wait for one. */
  countsOf(model: string): Readonly<RequestCounts> {
    return this.#attempts.countsOf(model);
  }

  /** Whether one more request of the key may wait for the model now. @throws QueueFullError where it may not */
  checkRoom(model: string, key: string): void {
    this.#attempts.models.get(model)?.checkRoom(key, performance.now());
  }

  /**
   * Submits a request with one sequence or several, or with beams: see InProcessHost.submitSeveral.
   * @throws QueueFullError, HostClosedError at once
   */
  submit(model: string, given: TokenRequest): TokenStream[] {
    const queue = this.#attempts.models.get(model);
    if (this.#isClosed) throw new HostClosedError('The gateway is closed and takes no more requests.');
    if (queue === undefined) {
      throw new HostClosedError(says`The gateway has no model ${nameOfKey(model)} any more, or not yet.`);
    }
    const { request: asked, fault } = takenRequest(given);
    const nowMs = performance.now();
    queue.checkRoom(asked.queueKey ?? '', nowMs);
    const number = this.#nextId++;
    const id = requestId(this.#options.id, number);
    const width = asked.beams?.width ?? 1;
    const numStreams = width > 1 ? width : (asked.numSequences ?? 1);
    // An invalid number is refused below, which needs one stream to say so.
    const count = Number.isInteger(numStreams) ? Math.min(Math.max(1, numStreams), MAX_SEQUENCES) : 1;
    const tell = (_: string, call: () => unknown) => this.#tell(call);
    const streams = Array.from(
      { length: count },
      (_, i) => new PieceQueue(BigInt(number), asked, () => this.#leave(id, i), tell),
    );
    try {
      if (fault !== null) throw fault;
      checkRange(width > 1 ? 'beams.width' : 'numSequences', numStreams, {
        min: 1,
        max: MAX_SEQUENCES,
        integer: true,
      });
      // What a worker's host would refuse is refused here, in the same words.
      checkTokenValues(asked);
      const request = new QueuedRequest({ id, number }, model, asked, streams, nowMs);
      request.wantsPrefill = canBePrefilled(asked);
      if (request.pin !== null) this.checkEngine(model, request.pin, asked.adapterName);
      this.#begin(request, queue);
    } catch (error) {
      const refusal = error instanceof RequestError ? error : RequestError.of(failureOf(error), error);
      for (const stream of streams) stream.fail(refusal);
    }
    return streams;
  }

  #begin(request: QueuedRequest, queue: ModelQueue): void {
    const { signal, timeLimitMs } = request.request;
    if (signal?.aborted) {
      request.finish('cancelled');
      return;
    }
    const release = signal && onAbort(signal, () => this.#attempts.end(request, 'cancelled'));
    const timer =
      timeLimitMs === undefined
        ? null
        : setTimeout(() => this.#attempts.end(request, 'timeout'), timeLimitMs);
    request.release = () => {
      release?.();
      if (timer !== null) clearTimeout(timer);
    };
    this.#attempts.add(request, queue);
  }

  /** Cancels what has not ended, and takes no more. */
  close(): void {
    this.#isClosed = true;
    for (const request of [...this.#attempts.requests.values()]) this.#attempts.end(request, 'cancelled');
    this.#silence.close();
  }

  /** Resolves once all requests of a model have ended. */
  async whenEmpty(model: string): Promise<void> {
    const isEmpty = () => {
      const { running, waiting } = this.countsOf(model);
      return running + waiting === 0;
    };
    while (!isEmpty()) await this.#attempts.whenOneEnds();
  }

  /** Ends a model's requests, and forgets it. */
  closeModel(model: string): void {
    this.#attempts.models.delete(model);
    this.#routes?.counts.forget(model);
    for (const request of [...this.#attempts.requests.values()]) {
      if (request.model === model) this.#attempts.end(request, 'cancelled');
    }
  }

  // Events that the transport reports.

  onBeat(beat: Beat): void {
    const change = this.roster.beat(beat, performance.now());
    if (change === 'refused') {
      if (!this.#hasRefused)
        this.#options.onWarning(
          `The worker ${beat.worker} is left out, and so are others: ${ROSTER_IS_FULL}`,
        );
      this.#hasRefused = true;
      return;
    }
    if (change === 'cardless') {
      void this.#askCard(beat);
      return;
    }
    if (change === 'gone') this.#lose(beat.worker, 'moved');
    const worker = this.roster.find(beat.worker);
    if (worker === undefined) return;
    this.#routes?.onBeat(worker);
    this.#options.onBeat(worker);
    if (worker.isLeaving) this.#moveFrom(worker);
    else if (change === 'joined') this.#moveToNew(worker.pool);
    if (change === 'joined') this.#unusedPrefill.look(this.roster, worker.pool.key);
    this.#attempts.pumpModel(worker.pool.key);
  }

  /** Asks a worker what its pool is: beats of equal workers do not repeat it. */
  async #askCard({ worker, pool }: Beat): Promise<void> {
    if (this.#askedPools.has(pool) || this.#askedPools.size >= MAX_ASKED) return;
    this.#askedPools.add(pool);
    const answer = await this.#options.port.probe(worker);
    this.#askedPools.delete(pool);
    if (!this.#isClosed && answer !== null && answer !== 'nobody' && answer.model !== undefined)
      this.onBeat(answer);
  }

  onFrames({ worker, runs, frames, failures, prefilled = [] }: FramesMessage): void {
    const known = this.roster.find(worker);
    const nowMs = performance.now();
    if (known !== undefined) this.roster.heard(known, nowMs);
    const stale: Stale = [];
    const pumped: string[] = [];
    if (runs !== undefined) this.#takeRuns(worker, runs, nowMs, stale, pumped);
    if (frames.length > 0)
      this.#takeEach(worker, frames, stale, (frame) => this.#onFrame(worker, frame, nowMs, pumped));
    if (failures.length > 0)
      this.#takeEach(worker, failures, stale, (frame) => this.#onFailure(worker, frame, pumped));
    if (prefilled.length > 0)
      this.#takeEach(worker, prefilled, stale, (frame) => this.#onPrefilled(worker, frame));
    if (stale.length > 0)
      for (const [id, attempt] of new Map(stale)) this.#attempts.stop(worker, id, attempt, null);
    for (const model of pumped) this.#attempts.pumpModel(model);
  }

  #takeEach<One extends { id: string; attempt: number }>(
    worker: string,
    all: readonly One[],
    stale: Stale,
    take: (one: One) => boolean,
  ): void {
    for (const one of all) {
      let isWanted = true;
      try {
        isWanted = take(one);
      } catch (error) {
        this.#endUntakable(worker, one.id, error);
      }
      if (!isWanted) stale.push([one.id, one.attempt]);
    }
  }

  /** Nearly all tokens come here: nothing is made for each of them that is not kept. */
  #takeRuns(worker: string, runs: Int32Array, nowMs: number, stale: Stale, pumped: string[]): void {
    for (const run of readRuns(runs)) {
      const request = this.#attempts.numbered.get(run.number);
      let isWanted = request !== undefined;
      try {
        if (request !== undefined) isWanted = this.#onRun(worker, request, run, nowMs, pumped);
      } catch (error) {
        this.#endUntakable(worker, request!.id, error);
      }
      if (!isWanted) stale.push([requestId(this.#options.id, run.number), run.attempt]);
    }
  }

  /** One of the frames of a message, which are of many requests, cannot be taken: its own request ends, and no other. */
  #endUntakable(worker: string, id: string, error: unknown): void {
    const why = `What worker ${worker} sent for the request cannot be taken: ${messageOf(error)}.`;
    const request = this.#attempts.requests.get(id);
    this.#options.onWarning(`${why} Request ${id}.`, request?.names);
    // What it has of the answer and what was noted of it may differ.
    const end = (of: QueuedRequest) => this.#attempts.fail(of, RequestError.of(failure('internal', why)));
    if (request !== undefined) this.#tell(() => end(request));
  }

  /** False: no request waits for it. */
  #onRun(
    worker: string,
    request: QueuedRequest,
    { attempt, sequence, index, tokens }: TokenRun,
    nowMs: number,
    pumped: string[],
  ): boolean {
    const frame = { id: request.id, attempt, sequence, index, count: tokens.length, isEnd: false };
    const piece = { tokens, finishReason: null };
    return this.#accept(worker, request, frame, piece, 'pushTokens', nowMs, pumped);
  }

  #onFrame(worker: string, { piece, ...place }: PieceFrame, nowMs: number, pumped: string[]): boolean {
    const request = this.#attempts.requests.get(place.id);
    if (request === undefined) return false;
    const frame = { ...place, count: piece.tokens.length, isEnd: piece.finishReason !== null };
    return this.#accept(worker, request, frame, piece, 'push', nowMs, pumped);
  }

  /** @param push how the request takes the tokens that follow those sent before */
  #accept(
    worker: string,
    request: QueuedRequest,
    frame: Frame,
    piece: TokenPiece,
    push: 'push' | 'pushTokens',
    nowMs: number,
    pumped: string[],
  ): boolean {
    if (!request.hasAsked(piece)) return this.#onStrange(worker, request, frame.attempt);
    const verdict = this.#attempts.book.accept(worker, frame);
    if (verdict.kind === 'stale') return false;
    if (this.#attempts.noteLeased(request, worker)) addOnce(pumped, request.model);
    if (verdict.kind === 'gap') this.#attempts.fall(request, 'gap');
    else if (verdict.kind === 'diverged' || (verdict.kind === 'repeat' && !repeats(request, frame, piece)))
      this.#attempts.diverge(request);
    else if (verdict.kind === 'take') {
      // Who answers has fetched what it could.
      this.#attempts.releaseBlocks(request);
      const wasSuspect = request.isSuspect;
      // Its worker may have room for the next.
      if (request.awaitsToken && this.#routes?.noteToken(request)) addOnce(pumped, request.model);
      const isSame = request[push](frame.sequence, piece, verdict.skip, nowMs);
      // The next suspect may be tried.
      if (wasSuspect && !request.isSuspect) addOnce(pumped, request.model);
      // The receiver of the piece may want no more, and has then left the request.
      if (request.stage === 'ended') addOnce(pumped, request.model);
      else if (!isSame) this.#attempts.diverge(request);
      else if (frame.isEnd && this.#attempts.book.isOver(request.id)) {
        addOnce(pumped, request.model);
        this.#attempts.forget(request);
      }
    }
    return true;
  }

  /** A worker sends tokens without the values that were asked for: it is of another kind, or ill. */
  #onStrange(worker: string, request: QueuedRequest, attempt: number): boolean {
    if (!this.#attempts.book.take(request.id, attempt, worker)) return false;
    request.lastFailure = 'its worker sent tokens without the values that were asked for with them';
    this.#attempts.fall(request, 'failed');
    this.#attempts.stop(worker, request.id, attempt, null);
    return true;
  }

  #onFailure(worker: string, { id, attempt, failure: why }: FailureFrame, pumped: string[]): boolean {
    const request = this.#attempts.requests.get(id);
    if (request === undefined || !this.#attempts.book.take(id, attempt, worker)) return false;
    addOnce(pumped, request.model);
    this.#attempts.noteLeased(request, worker);
    if (isRequestsFault(why.kind)) {
      this.#attempts.fail(request, RequestError.of(why));
      return true;
    }
    request.lastFailure = messageOfFailure(why);
    this.#attempts.fall(request, why.kind === 'ended' ? 'moved' : 'failed');
    return true;
  }

  /** A prompt has been computed: the request continues at a worker that answers it. */
  #onPrefilled(worker: string, { id, attempt, cachedTokens, bytes, numBlocks }: PrefilledFrame): boolean {
    const request = this.#attempts.requests.get(id);
    if (request === undefined || !this.#attempts.book.take(id, attempt, worker) || !request.isPrefill)
      return false;
    this.#attempts.noteLeased(request, worker);
    const layout = this.roster.find(worker)?.layout ?? null;
    if (bytes > 0 && layout !== null) request.handOver = { worker, attempt, layout, bytes, numBlocks };
    request.wantsPrefill = false;
    request.answer.limitCached(cachedTokens);
    this.#attempts.fall(request, 'moved');
    return true;
  }

  onHold({ worker, held }: HoldMessage): HoldAnswer {
    const known = this.roster.find(worker);
    if (known !== undefined) this.roster.told(known, performance.now());
    const ids = new Set<string>();
    const stale: [string, number][] = [];
    const pumped: string[] = [];
    for (const [id, attempt] of held) {
      const request = this.#attempts.requests.get(id);
      if (request === undefined || !this.#attempts.book.take(id, attempt, worker)) stale.push([id, attempt]);
      else {
        ids.add(id);
        if (this.#attempts.noteLeased(request, worker)) addOnce(pumped, request.model);
      }
    }
    // What it said in between is in this list already: a worker's messages keep their order.
    for (const id of this.#attempts.book.missing(worker, ids))
      this.#attempts.fall(this.#attempts.requests.get(id)!, 'gap');
    for (const model of pumped) this.#attempts.pumpModel(model);
    return { kind: 'held', stale };
  }

  async onPicture(
    { id, attempt, index, offset, length }: PictureMessage,
    most: number,
  ): Promise<BlocksAnswer> {
    const asking = () => {
      const request = this.#attempts.requests.get(id);
      const isCurrent = request !== undefined && this.#attempts.book.attemptOf(id) === attempt;
      return isCurrent ? request : undefined;
    };
    const request = asking();
    const picture = request?.request.sentPictures?.[index];
    if (request === undefined || picture === undefined || length > most) return NO_BLOCKS;
    try {
      const all = await picture.bytes();
      // It may have ended meanwhile, or be asked for by another worker.
      if (all === null || asking() !== request) return NO_BLOCKS;
      const bytes = all.subarray(offset, offset + length);
      return { kind: 'blocksPart', bytes, sum: crc32(bytes) };
    } catch (error) {
      const refusal = error instanceof RequestError ? error : RequestError.of(failureOf(error), error);
      if (asking() === request) this.#tell(() => this.#attempts.fail(request, refusal));
      return NO_BLOCKS;
    }
  }

  onCache(change: CacheChange): void {
    this.#routes?.onCache(change);
  }

  /** What became of a model's requests as they were sent where they are cached; null: they are not. */
  routingOf(model: string): ModelRouting | null {
    return this.#routes?.counts.of(model) ?? null;
  }

  /** Beats of workers arrive, and offers can be made. */
  get isConnected(): boolean {
    return this.#silence.isConnected;
  }

  onDisconnect(): void {
    if (this.#isClosed || !this.isConnected) return;
    this.#silence.noteConnected(false);
    this.#options.onWarning('The NATS server cannot be reached: requests wait until it is there again.');
  }

  onReconnect(): void {
    if (!this.isConnected) this.#options.onWarning('The NATS server is there again.');
    this.#silence.noteConnected(true);
    this.#attempts.offerAll();
  }

  /** A worker is lost, or has ended: what it had continues elsewhere. */
  #lose(worker: string, why: 'lost' | 'moved'): void {
    this.roster.remove(worker);
    this.#routes?.lose(worker);
    this.#attempts.fallAllOf(worker, why);
    this.#options.onLost(worker, why);
  }

  /** A worker is to end: what it has moves, if an equal worker is there. Otherwise it may finish it. */
  #moveFrom({ id, pool }: RosterWorker): void {
    if (pool.takers.size > 0) this.#attempts.fallAllOf(id, 'moved');
  }

  #moveToNew({ leaving }: RosterPool): void {
    for (const worker of leaving) this.#moveFrom(worker);
  }

  #leave(id: string, sequence: number): void {
    const request = this.#attempts.requests.get(id);
    if (request === undefined) return;
    this.#attempts.book.leave(id, sequence);
    const worker = this.#attempts.book.workerOf(id);
    if (this.#attempts.book.isOver(id)) {
      this.#attempts.end(request, 'cancelled');
    } else if (worker !== null && (request.request.beams?.width ?? 1) === 1) {
      this.#attempts.stop(worker, id, this.#attempts.book.attemptOf(id), sequence);
    }
  }

  #tell(call: () => unknown): void {
    try {
      call();
    } catch (error) {
      this.#options.onWarning(`A listener of pieces failed: ${messageOf(error)}`);
    }
  }
}

function addOnce(all: string[], one: string): void {
  if (!all.includes(one)) all.push(one);
}

/** The tokens are those that the request has at this place. */
function repeats({ answer }: QueuedRequest, { sequence, index }: Frame, { tokens }: TokenPiece): boolean {
  return answer.agrees(sequence, index, tokens);
}
