import { failure, failureOf } from '../../callbacks/request-failure.js';
import { RequestError } from '../../callbacks/token-request.js';
import { ATTEMPT_RULES, type AttemptRules, type Fall } from '../../host/attempt-faults.js';
import { type GatewayPort, OfferError } from '../nats/gateway-port.js';
import { LeaseBook } from '../nats/lease-book.js';
import type { WorkItem } from '../nats/messages.js';
import type { RequestNames } from '../nats/request-names.js';
import type { WorkerRoster } from '../nats/worker-roster.js';
import type { CacheRoutes } from './cache-routes.js';
import type { ModelQueue, Surroundings } from './model-queue.js';
import { isOffer, type QueuedRequest, type Stage } from './queued-request.js';
import { RequestTrace } from './request-trace.js';
import { Unleased } from './unleased.js';

export interface AttemptsOptions {
  /** Id of the gateway among all. */
  id: string;
  port: GatewayPort;
  rules?: AttemptRules;
  /** A request may continue on a worker that gives other bits than the one that began it. */
  allowsDifferentBits: boolean;
  /** Longest prompt, without what is cached, that is not computed by a prefill worker, in tokens. */
  maxLocalPrefillLength: number;
  /** Called with an answer that belongs to no request, and the names of the request that it is about. */
  onWarning: (message: string, about?: RequestNames) => void;
  /** Called with each attempt that was given up. */
  onFall?: (fallen: Fallen) => void;
}

/** An attempt that was given up. */
export interface Fallen extends RequestNames {
  /** The worker that had it; null: none. */
  worker: string | null;
  attempt: number;
  why: Fall;
  /** In its worker's words; null: it said nothing. */
  reason: string | null;
}

/** Milliseconds after which a request that could not be offered is offered again. */
const RETRY_MS = 200;
const NOTHING_KNOWN = 'its worker was lost';

/** Numbers of a model's requests: those with a worker, and those that wait for one. */
export interface RequestCounts {
  running: number;
  waiting: number;
}

const NO_REQUESTS: Readonly<RequestCounts> = { running: 0, waiting: 0 };

const kindOf = (stage: Stage): keyof RequestCounts => (stage === 'leased' ? 'running' : 'waiting');
/** A number of times, as a sentence has it. */
const times = (count: number) => (count === 1 ? 'once' : `${count} times`);

/**
 * The requests of a gateway and their attempts, from one to the next:
 *
 *                .-> a worker that was chosen --.
 *   ModelQueue --|     | not taken              |-> lease of a worker -> end
 *        ^       '-----'-> offer -> stream -----'           |
 *        '----------------------- attempt + 1 <---- fall ---'
 *
 * What the book, a request's stage and the numbers of offers say always changes together, here.
 */
export class Attempts {
  readonly book: LeaseBook;
  readonly requests = new Map<string, QueuedRequest>();
  /** The same requests by their numbers. */
  readonly numbered = new Map<number, QueuedRequest>();
  readonly models = new Map<string, ModelQueue>();
  readonly unleased: Unleased;
  readonly #options: AttemptsOptions;
  readonly #rules: AttemptRules;
  readonly #roster: WorkerRoster;
  readonly #routes: CacheRoutes | null;
  readonly #counts = new Map<string, RequestCounts>();
  /** Number of requests of each pool that are in the stream, or on their way there. */
  readonly #offers = new Map<string, number>();
  readonly #around: Surroundings;
  #onEnd: (() => void) | null = null;

  /** @param routes null: any worker may take a request */
  constructor(options: AttemptsOptions, roster: WorkerRoster, routes: CacheRoutes | null = null) {
    this.#options = options;
    this.#roster = roster;
    this.#routes = routes;
    this.#rules = options.rules ?? ATTEMPT_RULES;
    this.book = new LeaseBook(this.#rules);
    const { allowsDifferentBits, maxLocalPrefillLength } = options;
    this.unleased = new Unleased(allowsDifferentBits);
    const rules = { allowsDifferentBits, maxLocalPrefillLength };
    this.#around = { roster, offers: this.#offers, routes, ...rules };
  }

  /** Workers are there that may begin the request. */
  hasTakersFor(request: QueuedRequest): boolean {
    const pools = this.#roster.poolsOf(request.model);
    const allowed = this.models.get(request.model)?.aims.allowed(request, pools) ?? pools;
    return allowed.some(({ takers }) => takers.size > 0);
  }

  countsOf(model: string): Readonly<RequestCounts> {
    return this.#counts.get(model) ?? NO_REQUESTS;
  }

  /** Takes a request, which waits for its turn from now on. */
  add(request: QueuedRequest, queue: ModelQueue): void {
    this.requests.set(request.id, request);
    this.numbered.set(request.number, request);
    this.book.add(request.id, request.pieces.length);
    request.trace = RequestTrace.begin(request.request.trace, request.names, request.waitingSinceMs);
    this.#count(request.model, 'waiting', 1);
    this.unleased.note(request);
    for (const pieces of request.pieces) pieces.isWaiting = true;
    queue.push(request);
    this.pump(queue);
  }

  /** Resolves when the next request has ended. */
  whenOneEnds(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#onEnd;
      this.#onEnd = () => {
        before?.();
        resolve();
      };
    });
  }

  // Offers.

  #setStage(request: QueuedRequest, stage: Stage): void {
    const { pool } = request;
    if (pool !== null && isOffer(request.stage)) this.#countOffer(pool.fingerprint, -1);
    if (request.stage !== 'ended') this.#count(request.model, kindOf(request.stage), -1);
    request.stage = stage;
    if (stage !== 'ended') this.#count(request.model, kindOf(stage), 1);
    if (pool !== null && isOffer(stage)) this.#countOffer(pool.fingerprint, 1);
    this.unleased.note(request);
    // The client receives nothing before a worker has the request.
    for (const queue of request.pieces) queue.isWaiting = stage !== 'leased';
  }

  #count(model: string, kind: keyof RequestCounts, change: 1 | -1): void {
    const counts = this.#counts.get(model) ?? { running: 0, waiting: 0 };
    counts[kind] += change;
    if (counts.running + counts.waiting === 0) this.#counts.delete(model);
    else this.#counts.set(model, counts);
  }

  #countOffer(pool: string, change: 1 | -1): void {
    const count = (this.#offers.get(pool) ?? 0) + change;
    if (count === 0) this.#offers.delete(pool);
    else this.#offers.set(pool, count);
  }

  pumpModel(model: string): void {
    const queue = this.models.get(model);
    if (queue !== undefined) this.pump(queue);
  }

  /** Offers what there is room for. */
  pump(queue: ModelQueue): void {
    for (const { request, pool, worker, isPrefill } of queue.next(this.#around, performance.now())) {
      if (request.hasBegun && pool.fingerprint !== request.pool?.fingerprint) this.#restart(request);
      request.pool = pool;
      request.isPrefill = isPrefill;
      // The worker that answers it computes its prompt: later tokens are appended to that.
      request.wantsPrefill &&= isPrefill;
      request.trace?.onRoute({ pool: pool.fingerprint, worker, isPrefill });
      if (worker === null) this.#send(request);
      else void this.#direct(request, worker);
    }
  }

  /** Another pool would not continue the same answer. */
  #restart(request: QueuedRequest): void {
    if (this.#options.allowsDifferentBits) return;
    request.restart();
    this.book.restart(request.id);
  }

  /** Offers again what was offered: the stream may have been lost, and knows an attempt that it has still. */
  offerAll(): void {
    for (const request of this.requests.values()) if (request.stage === 'offered') void this.#offer(request);
    for (const queue of this.models.values()) this.pump(queue);
  }

  /** The present attempt of a request as it crosses, and whether it is still the present one. */
  #itemOf(request: QueuedRequest): { item: WorkItem; isCurrent: () => boolean } {
    const { id } = request;
    const attempt = this.book.attemptOf(id);
    const ended = request.pieces.flatMap((_, i) => (this.book.isEnded(id, i) ? [i] : []));
    const item = request.workItem(this.#options.id, attempt, ended, performance.now());
    const isCurrent = () => this.requests.get(id) === request && this.book.attemptOf(id) === attempt;
    return { item, isCurrent };
  }

  /** Sends a request to the worker that was chosen for it, and into the stream if that one does not say that it has it. */
  async #direct(request: QueuedRequest, worker: string): Promise<void> {
    const { id, model } = request;
    this.#setStage(request, 'directed');
    const { item, isCurrent } = this.#itemOf(request);
    const isTaken = await this.#routes!.send(model, worker, item, request.trace);
    // Cancelled meanwhile, or taken and lost.
    if (!isCurrent()) {
      if (isTaken) this.stop(worker, id, item.attempt, null);
      return;
    }
    // The worker has said so already.
    if (request.stage !== 'directed') return;
    if (isTaken && this.book.take(id, item.attempt, worker)) this.noteLeased(request, worker);
    else this.#send(request);
  }

  #send(request: QueuedRequest): void {
    this.#routes?.noteStreamed(request.model);
    this.#setStage(request, 'sending');
    void this.#offer(request);
  }

  async #offer(request: QueuedRequest): Promise<void> {
    const { item, isCurrent } = this.#itemOf(request);
    try {
      const offer = await this.#options.port.offer(request.pool!, item);
      // Cancelled meanwhile, or taken and lost.
      if (!isCurrent()) offer.withdraw();
      else {
        request.offer = offer;
        if (request.stage !== 'sending') return;
        request.patientUntilMs = performance.now() + request.patienceMs;
        this.#setStage(request, 'offered');
      }
    } catch (error) {
      if (isCurrent()) this.#noteNotOffered(request, error);
    }
  }

  #noteNotOffered(request: QueuedRequest, error: unknown): void {
    if (!(error instanceof OfferError) || error.reason === 'large') {
      this.fail(request, RequestError.of(failureOf(error), error));
      return;
    }
    // The connection comes again by itself, and what is in a full stream is taken.
    const attempt = this.book.attemptOf(request.id);
    setTimeout(() => {
      if (this.requests.get(request.id) !== request || request.stage === 'leased') return;
      if (this.book.attemptOf(request.id) !== attempt) return;
      this.#setStage(request, 'waiting');
      this.#queueAgain(request);
    }, RETRY_MS);
  }

  #queueAgain(request: QueuedRequest): void {
    const queue = this.models.get(request.model);
    queue?.pushAgain(request);
    if (queue !== undefined) this.pump(queue);
  }

  // Leases.

  /** A worker has the request. True where it has just got it. */
  noteLeased(request: QueuedRequest, worker: string): boolean {
    if (request.stage === 'leased') return false;
    this.#setStage(request, 'leased');
    const known = this.#roster.find(worker);
    this.#routes?.noteLeased(request, known);
    request.trace?.onLease(worker);
    const nowMs = performance.now();
    request.noteTaken(nowMs);
    if (known === undefined) return true;
    request.noteEngine(known.pool.model);
    this.#roster.noteHeld(known, 1);
    if (this.book.heldBy(worker).size === 1) this.#roster.told(known, nowMs);
    return true;
  }

  #noteLeft(worker: string): void {
    const known = this.#roster.find(worker);
    if (known !== undefined) this.#roster.noteHeld(known, -1);
  }

  /** Gives the present attempt up, and begins the next. */
  fall(request: QueuedRequest, why: Fall): void {
    const { id } = request;
    const worker = this.book.workerOf(id);
    const attempt = this.book.attemptOf(id);
    const result = this.book.fall(id, why);
    this.#routes?.noteOver(id);
    if (worker !== null) {
      this.#noteLeft(worker);
      // The blocks that it keeps are still wanted.
      const isKept = request.handOver?.worker === worker && request.handOver.attempt === attempt;
      if (why !== 'failed' && !isKept) this.stop(worker, id, attempt, null);
    }
    request.offer?.withdraw();
    request.offer = null;
    this.#noteFall(request, { worker, attempt, why });
    if (result === 'poisoned') {
      this.fail(request, this.#poisoned(request));
      return;
    }
    request.isSuspect = this.book.faultsOf(id).isSuspect;
    request.avoids = why === 'gap' || why === 'failed' ? worker : null;
    request.waitingSinceMs = performance.now();
    request.trace?.onAgain(request.waitingSinceMs);
    this.#setStage(request, 'waiting');
    if (request.isPrefill) request.endPrefill(why);
    this.#queueAgain(request);
  }

  #noteFall(
    request: QueuedRequest,
    { worker, attempt, why }: Pick<Fallen, 'worker' | 'attempt' | 'why'>,
  ): void {
    const reason = why === 'failed' ? request.lastFailure : null;
    request.trace?.onFall(why, reason, request.numTokens);
    this.#options.onFall?.({ ...request.names, worker, attempt, why, reason });
  }

  #poisoned(request: QueuedRequest): RequestError {
    return RequestError.of(failure('internal', `${this.#whyPoisoned(request)}; it is not tried again.`));
  }

  #whyPoisoned({ id, lastFailure }: QueuedRequest): string {
    const { maxFruitlessAttempts, maxLostAttempts } = this.#rules;
    const { fruitless, lost } = this.book.faultsOf(id);
    const last = lastFailure ?? NOTHING_KNOWN;
    if (fruitless >= maxFruitlessAttempts)
      return `The request was begun ${maxFruitlessAttempts} times, and each time ${last}`;
    const begun = `The request was begun ${times(this.book.attemptOf(id) - 1)}`;
    if (lost >= maxLostAttempts)
      return `${begun}, and its worker was lost, or failed, in ${lost} of them, the last time: ${last}`;
    const how =
      lost === 0 ? 'none of its workers was lost' : `its worker was lost, or failed, ${times(lost)}`;
    return `${begun} and did not end: ${how}, and all other attempts ended since it moved, or since pieces of its answer did not arrive`;
  }

  /** Two workers gave different tokens: the answer cannot continue. */
  diverge(request: QueuedRequest): void {
    const why =
      'Two workers gave other tokens for the request, though they should be equal: its answer cannot go on.';
    this.#options.onWarning(
      `${why} Request ${request.id}, pool ${request.pool?.fingerprint}.`,
      request.names,
    );
    this.fail(request, RequestError.of(failure('internal', why)));
  }

  /** All that a worker has continues elsewhere. */
  fallAllOf(worker: string, why: 'lost' | 'moved' | 'gap'): void {
    for (const id of [...this.book.heldBy(worker)]) this.fall(this.requests.get(id)!, why);
  }

  // Ends.

  /** Ends a request without a word of its worker. */
  end(request: QueuedRequest, reason: 'cancelled' | 'timeout'): void {
    if (!this.requests.has(request.id)) return;
    request.trace?.onEnd(reason, request.numTokens);
    this.#dismiss(request);
    request.finish(reason);
  }

  fail(request: QueuedRequest, error: Error): void {
    request.trace?.onEnd('error', request.numTokens);
    this.#dismiss(request);
    request.fail(error);
  }

  /** Forgets a request that a worker may still be working on. */
  #dismiss(request: QueuedRequest): void {
    const { id } = request;
    const worker = this.book.workerOf(id);
    if (worker !== null) this.stop(worker, id, this.book.attemptOf(id), null);
    this.forget(request);
    this.pumpModel(request.model);
  }

  /** Forgets a request whose answer is complete. */
  forget(request: QueuedRequest): void {
    const { id } = request;
    const worker = this.book.workerOf(id);
    if (worker !== null) this.#noteLeft(worker);
    else request.offer?.withdraw();
    this.#setStage(request, 'ended');
    this.#routes?.noteOver(id);
    this.releaseBlocks(request);
    this.book.remove(id);
    this.requests.delete(id);
    this.numbered.delete(request.number);
    this.models.get(request.model)?.settle(request);
    request.trace?.onEnd('answered', request.numTokens);
    request.release();
    const onEnd = this.#onEnd;
    this.#onEnd = null;
    onEnd?.();
  }

  /** No worker fetches blocks of its prompt any more. */
  releaseBlocks(request: QueuedRequest): void {
    const { id, handOver } = request;
    if (handOver === null) return;
    request.handOver = null;
    this.stop(handOver.worker, id, handOver.attempt, null);
  }

  /** Names the work that a worker should stop because no request waits for it. */
  stop(worker: string, id: string, attempt: number, sequence: number | null): void {
    this.#options.port.stop(worker, { kind: 'stop', id, attempt, sequence });
  }
}
