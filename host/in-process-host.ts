import { ErrorReporter } from '../base/error-reporter.js';
import { type CallbackName, tellGuarded } from '../base/guarded-calls.js';
import { onAbort } from '../base/on-abort.js';
import type { FormationListener } from '../callbacks/formation.js';
import type {
  FunctionCallbacks,
  GptManagerOptions,
  ManagerState,
  ModuleCallbacks,
} from '../callbacks/gpt-manager-options.js';
import {
  DEFAULT_JOIN_TIMEOUT_MS,
  type MissingRanks,
  type RanksOptions,
  whyHeld,
} from '../callbacks/ranks-options.js';
import { failure, failureOf, type RequestFailure } from '../callbacks/request-failure.js';
import { checkRange, drawSeed } from '../callbacks/sampling-params.js';
import {
  HostClosedError,
  MAX_SEQUENCES,
  RequestError,
  type TokenRequest,
  type TokenStream,
} from '../callbacks/token-request.js';
import type { InferenceRequest, NamedTensor } from '../callbacks/types.js';
import type { BlockContents, EngineInfo, OfferedBlocks, TurnChanges } from '../callbacks/worker-messages.js';
import type { PromptBlocks } from '../kvcache/block-hashes.js';
import { AdapterSends } from './adapter-sends.js';
import { FormationWatchers } from './formation-watchers.js';
import { GptManager } from './gpt-manager.js';
import type { InProcessCalls } from './host-bridge.js';
import { entryOf, type HostEntry, inHostsWords, takenRequest, withRows } from './host-entry.js';
import { finishReasonIn } from './piece-reader.js';
import { FairQueue } from './queue/fair-queue.js';
import { QueuePace } from './queue/queue-pace.js';
import { type QueueLimits, requireRoom } from './queue/queue-room.js';
import { ArrivalQueue, type WaitingQueue } from './queue/waiting-queue.js';
import { Resumption } from './resumption.js';
import { checkAdapter } from './sent-adapters.js';
import { SequenceQueues, type Taken } from './sequence-queues.js';
import { inferenceRequestOf } from './token-inputs.js';
import { PieceQueue } from './token-stream.js';

type ManagerOptions = Omit<
  GptManagerOptions,
  keyof FunctionCallbacks | keyof ModuleCallbacks | 'terminateReqId'
>;

/** Options of an InProcessHost: those of a GptManager without callbacks, and those of the queue. */
export interface InProcessHostOptions extends ManagerOptions {
  /**
   * Number of requests that may wait, not counting those in the engine, before submit throws QueueFullError;
   * default 256.
   */
  maxQueueSize?: number;
  /**
   * Number of requests of one queueKey that may wait. Default: maxQueueSize; with fairQueueing as many as there are free
   * places, so that no key can fill the queue.
   */
  maxQueueSizePerKey?: number;
  /** Chooses the next requests by deficit round robin over queueKeys, in tokens; default false. */
  fairQueueing?: boolean;
  /** Called after each iteration with the batch manager's statistics string. */
  onStats?: (json: string) => void;
  /**
   * Requests that the engine had when it was lost continue in the next one, with the same bits. Default true;
   * false: they fail with the engine. Without effect where workerRestart is false, and where every rank's
   * callbacks are called.
   */
  resumeRequests?: boolean;
}

/** Options for closing a host. By default all accepted requests end first. */
export interface CloseOptions {
  /** Cancels remaining requests at once. */
  abort?: boolean | undefined;
  /** Cancels remaining requests after this many milliseconds. */
  timeoutMs?: number | undefined;
  /**
   * Milliseconds that cancelled requests may take to end; after that the engine is ended in the middle of its
   * iteration. Default: the iteration ends first, however long it takes.
   */
  terminateAfterMs?: number | undefined;
}

export const DEFAULT_MAX_QUEUE_SIZE = 256;
/** With fair queueing: number of requests that wait inside the engine for their first step. */
const MAX_WAITING = 8;

/**
 * A GptManager with a bounded queue in front, for programs that submit requests and stream their tokens in the same
 * process.
 *
 *   submit -> queue (maxQueueSize; by priority, or fair among keys) -> getInferenceRequests -> engine -> sendResponse -> pieces
 *
 * Should the engine die, its requests continue in the next worker, bit for bit as without the break: see
 * Resumption. One that kills engines again and again fails with a RequestError. Those in the queue, and those
 * that come meanwhile, go to the next worker too. All of them fail with a HostClosedError where there is no
 * next one.
 */
export class InProcessHost {
  readonly #manager: GptManager;
  readonly #errors: ErrorReporter;
  readonly #limits: QueueLimits;
  readonly #queue: WaitingQueue<HostEntry>;
  readonly #pace = new QueuePace();
  readonly #formations: FormationWatchers;
  readonly #engine = { numBlocks: 0, tokensPerBlock: 0 };
  readonly #entries = new Map<bigint, HostEntry>();
  readonly #stops = new Set<bigint>();
  readonly #adapters: AdapterSends;
  readonly #resumption: Resumption;
  /** Requests of a lost engine continue in the next one. */
  readonly #resumes: boolean;
  readonly #joinTimeoutMs: number;
  #nextId = 1n;
  #isClosed = false;
  /** Why it takes no requests though its engine will be back; null: it takes them. */
  #whyHeld: string | null = null;
  #onEmpty: (() => void) | null = null;

  /** Throws a ParameterError for options that cannot work. */
  constructor(options: InProcessHostOptions) {
    const {
      maxQueueSize = DEFAULT_MAX_QUEUE_SIZE,
      maxQueueSizePerKey,
      fairQueueing = false,
      onStats,
      resumeRequests = true,
      ...manager
    } = options;
    const { ranks, optionalParams } = manager;
    this.#resumes =
      resumeRequests && optionalParams?.workerRestart !== false && ranks?.requests !== 'everyRank';
    this.#joinTimeoutMs = ranks?.joinTimeoutMs ?? DEFAULT_JOIN_TIMEOUT_MS;
    this.#errors = new ErrorReporter(options.onError);
    this.#limits = { maxQueueSize, maxQueueSizePerKey, fairQueueing };
    this.#adapters = new AdapterSends(!optionalParams?.isolate, {
      wake: () => this.#manager.wake(),
      forgetAdapter: (taskId) => this.#manager.forgetAdapter(taskId),
      fail: (entry, error) => this.#fail(entry, RequestError.of(failureOf(error), error)),
    });
    this.#resumption = new Resumption({
      wake: () => this.#manager.wake(),
      end: (entry, reason) => this.#endBefore(entry, reason),
      finish: (entry) => this.#finish(entry),
      fail: (entry, error) => this.#fail(entry, error),
    });
    this.#queue = fairQueueing ? new FairQueue() : new ArrivalQueue();
    // Requests that wait inside the engine can no longer be put in a fair order.
    const waiting = fairQueueing && manager.modelType !== 'V1' ? { maxWaitingRequests: MAX_WAITING } : {};
    const inProcess: InProcessCalls = {
      sendNewTokens: (requestId, sequence, piece) => {
        const entry = this.#entries.get(requestId);
        if (entry !== undefined) this.#noteTaken(entry, entry.pieces.pushTokens(sequence, piece));
      },
      lose: (requestIds, why) => this.#lose(requestIds, why),
      noteTurns: (turns) => this.#noteTurns(turns),
      givesTable: (requestId) => (this.#entries.get(requestId)?.rows ?? null) !== null,
    };
    const all: GptManagerOptions = {
      ...manager,
      onError: (error) => this.#errors.report(error),
      // No polling is needed: each submission and cancellation wakes the manager.
      optionalParams: { ...waiting, ...optionalParams, idlePollIntervalMs: 0 },
      getInferenceRequests: (max) => this.#dequeue(max),
      sendResponse: (requestId, outputs, final, _error, failure) =>
        this.#respond(requestId, outputs, final, failure ?? null),
      pollStopSignals: () => this.#takeStops(),
      ...(onStats ? { returnBatchManagerStats: onStats } : {}),
      ...(ranks ? { ranks: this.#listened(ranks) } : {}),
    };
    this.#manager = new GptManager(all, inProcess);
    this.#formations = new FormationWatchers(this.#engine, this.#entries, {
      watch: (listener, intervalMs) => this.#manager.watchFormation(listener, intervalMs),
      queue: () => ({
        size: this.queued,
        list: (max) =>
          [...this.#resumption.lost(), ...this.#adapters.parked(), ...this.#queue.list(max)].slice(0, max),
      }),
      tell: (call) => this.#tell({ callback: 'watchFormation' }, call),
    });
    void this.#manager.ended.then(() => this.#failRest());
    this.#manager.ready.then(
      (info) =>
        Object.assign(this.#engine, { numBlocks: info.numBlocks, tokensPerBlock: info.tokensPerBlock }),
      () => {},
    );
  }

  /** Resolves when the engine is loaded; rejects if it cannot be. */
  get ready(): Promise<EngineInfo> {
    return this.#manager.ready;
  }

  /** See GptManager.info. */
  get info(): EngineInfo | null {
    return this.#manager.info;
  }

  get state(): ManagerState {
    return this.#manager.state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#manager.failure;
  }

  /** Workers started after the first one. */
  get restarts(): number {
    return this.#manager.restarts;
  }

  /** See GptManager.pid. */
  get pid(): number | null {
    return this.#manager.pid;
  }

  /** Number of requests that wait for a place in the engine, for room for their adapter, or for the next engine. */
  get queued(): number {
    return this.#numWaiting + this.#resumption.size;
  }

  /** Number of requests that an engine had when it was lost, and that continue in the next one. */
  get lost(): number {
    return this.#resumption.size;
  }

  /** Those of `queued` that have no place yet: the queue's limit is theirs. */
  get #numWaiting(): number {
    return this.#queue.size + this.#adapters.numShort;
  }

  /** Number of requests that were submitted and have not ended. */
  get size(): number {
    return this.#entries.size;
  }

  /** Number of requests in the engine. */
  get running(): number {
    return this.#entries.size - this.queued;
  }

  /** Number of requests that have not run yet or are paused: those of `queued`, and those that wait for blocks or an adapter's room in the engine. */
  get waiting(): number {
    let count = 0;
    for (const { isWaiting } of this.#entries.values()) if (isWaiting) count++;
    return count;
  }

  /** Of these the requests that had run, and are paused in the engine. */
  get paused(): number {
    let count = 0;
    for (const { isPaused, isQueued } of this.#entries.values()) if (isPaused && !isQueued) count++;
    return count;
  }

  get maxQueueSize(): number {
    return this.#limits.maxQueueSize;
  }

  /** Task ids of the adapters of requests that run, and of those that wait: see `waiting`. */
  adaptersInFlight(): { running: Set<bigint>; waiting: Set<bigint> } {
    const ids = { running: new Set<bigint>(), waiting: new Set<bigint>() };
    for (const { adapter, isWaiting } of this.#entries.values()) {
      if (adapter !== null) (isWaiting ? ids.waiting : ids.running).add(adapter.taskId);
    }
    return ids;
  }

  /**
   * Submits a request; its pieces come from the returned stream, for one consumer. An invalid request makes the stream
   * reject with a RequestError. Throws QueueFullError or HostClosedError at once.
   */
  submit(request: TokenRequest): TokenStream {
    return this.submitSeveral(request)[0]!;
  }

  /**
   * Submits a request with several sequences or beams: returns a stream for each, for one consumer each. Leaving one
   * early ends its sequence, leaving all of them ends the request. Beams end together; each stream brings its beam
   * whole.
   */
  submitSeveral(given: TokenRequest): TokenStream[] {
    if (this.#isClosed || this.state === 'failed' || this.state === 'stopped') {
      throw new HostClosedError(this.failure?.message ?? 'The host is closed and takes no more requests.');
    }
    if (this.#whyHeld !== null) throw new HostClosedError(this.#whyHeld);
    const { request, fault } = takenRequest(given);
    this.checkRoom(request.queueKey ?? '');
    const requestId = this.#nextId++;
    const width = request.beams?.width ?? 1;
    // An invalid number is refused below, which needs one stream to say so.
    const asked = width > 1 ? width : (request.numSequences ?? 1);
    const count = Number.isInteger(asked) ? Math.min(Math.max(1, asked), MAX_SEQUENCES) : 1;
    const left = new Set<number>();
    const whole = new Set<number>();
    const leave = (index: number, isWhole: boolean) => {
      left.add(index);
      if (isWhole) whole.add(index);
      const entry = this.#entries.get(requestId);
      if (entry !== undefined) entry.isWhole = whole.size === count;
      if (left.size === count) this.cancel(requestId);
      else if (entry !== undefined && this.#resumption.has(entry)) {
        if (entry.pieces.isOver(left)) this.#finish(entry);
      } else if (width === 1 && entry?.isQueued === false) {
        this.#manager.stopSequence(requestId, index);
      }
    };
    const tell = (callback: string, call: () => unknown) => this.#tell({ callback, requestId }, call);
    const queues = Array.from(
      { length: count },
      (_, index) => new PieceQueue(requestId, request, (isWhole) => leave(index, isWhole), tell),
    );
    const pieces = new SequenceQueues(queues, request);
    try {
      if (fault !== null) throw fault;
      checkRange(width > 1 ? 'beams.width' : 'numSequences', asked, {
        min: 1,
        max: MAX_SEQUENCES,
        integer: true,
      });
      const arrivalTimeMs = performance.timeOrigin + performance.now();
      const { adapter, ...alone } = request;
      if (adapter !== undefined) checkAdapter(adapter);
      const carried = request.loraTaskId === undefined ? request : alone;
      // Another engine continues with the random numbers of this one.
      const seeded = this.#resumes ? { ...carried, seed: carried.seed ?? drawSeed() } : carried;
      this.#enqueue({ ...inferenceRequestOf(requestId, seeded), arrivalTimeMs }, request, pieces, left);
    } catch (error) {
      pieces.fail(RequestError.of(failureOf(error), error));
    }
    return queues;
  }

  /** Stops a request in any state; its stream ends with the finish reason 'cancelled'. Unknown ids are ignored. */
  cancel(requestId: bigint): void {
    const entry = this.#entries.get(requestId);
    if (!entry) return;
    entry.isCancelled = true;
    if (this.#isOutside(entry)) {
      this.#endBefore(entry, 'cancelled');
    } else {
      this.#stops.add(requestId);
      this.#manager.wake();
    }
  }

  /**
   * Calls the listener with the requests in flight, at most once in `intervalMs` while iterations run and
   * once more when all have ended, until the returned function is called. Costs nothing while nothing is
   * watched.
   */
  watchFormation(listener: FormationListener, intervalMs = 200): () => void {
    return this.#formations.watch(listener, intervalMs);
  }

  /** Forgets every block of the KV cache that later requests could reuse; see GptManager.resetCache. */
  resetCache(): Promise<number> {
    return this.#manager.resetCache();
  }

  /** Content of cached blocks of a prompt; see GptManager.readBlocks. */
  readBlocks(prompt: PromptBlocks, maxBytes: number): Promise<BlockContents> {
    return this.#manager.readBlocks(prompt, maxBytes);
  }

  /** Number of cached blocks of a prompt; see GptManager.countBlocks. */
  countBlocks(prompt: PromptBlocks): Promise<number> {
    return this.#manager.countBlocks(prompt);
  }

  /** Makes blocks that an equal engine has computed cached ones; see GptManager.writeBlocks. */
  writeBlocks(prompt: PromptBlocks, blocks: OfferedBlocks): Promise<number> {
    return this.#manager.writeBlocks(prompt, blocks);
  }

  /** Says that no more requests with this task's adapter will come: the engine need not hold it; see GptManager.forgetAdapter. */
  forgetAdapter(taskId: bigint): void {
    this.#adapters.forget(taskId);
  }

  /** Takes no more requests, lets accepted ones end, and ends the engine. A second call may abort what still runs. */
  async close({ abort = false, timeoutMs, terminateAfterMs }: CloseOptions = {}): Promise<void> {
    this.#isClosed = true;
    const timers: NodeJS.Timeout[] = [];
    const cancel = () => {
      if (terminateAfterMs !== undefined) timers.push(setTimeout(() => this.#terminate(), terminateAfterMs));
      this.#cancelAll();
    };
    if (abort) cancel();
    else if (timeoutMs !== undefined) timers.push(setTimeout(cancel, timeoutMs));
    await this.#whenEmpty();
    await this.#manager.shutdown();
    for (const timer of timers) clearTimeout(timer);
  }

  /** The same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Ends the engine: cancelled requests that still run are forgotten first, since their end is not needed.
   */
  #terminate(): void {
    for (const entry of [...this.#entries.values()]) {
      this.#forget(entry);
      entry.pieces.finish('cancelled');
    }
    void this.#manager.terminate();
  }

  /** Calls a function of the program that only observes: if it fails, requests continue. */
  #tell(name: CallbackName, call: () => unknown): void {
    tellGuarded(name, call, (error) => this.#errors.report(error));
  }

  #queuedOf(key: string): number {
    let count = this.#queue.sizeOf(key);
    for (const entry of this.#adapters.parked()) if (entry.key === key) count++;
    return count;
  }

  /** Whether one more request of the key may wait now. @throws QueueFullError where it may not */
  checkRoom(key: string): void {
    const waiters = { size: this.#numWaiting, ofKey: () => this.#queuedOf(key) };
    requireRoom(this.#limits, waiters, (size) => this.#pace.waitMs(size, performance.now()));
  }

  #enqueue(
    inference: InferenceRequest,
    request: TokenRequest,
    pieces: SequenceQueues,
    left: ReadonlySet<number>,
  ): void {
    const { requestId } = inference;
    const { signal, timeLimitMs } = request;
    if (signal?.aborted) {
      pieces.finish('cancelled');
      return;
    }
    const release = signal && onAbort(signal, () => this.cancel(requestId));
    const entry = entryOf(inference, request, pieces, left, () => release?.());
    if (timeLimitMs !== undefined) entry.timer = this.#startTimer(entry, timeLimitMs);
    this.#entries.set(requestId, entry);
    this.#adapters.begin(entry);
    this.#queue.push(entry);
    this.#manager.wake();
  }

  /**
   * Starts the time limit, which counts from submission: a request that still waits is ended, and the engine gets the
   * time that is left.
   */
  #startTimer(entry: HostEntry, timeLimitMs: number): NodeJS.Timeout {
    const timer = setTimeout(() => {
      // A timer may be early by less than a millisecond.
      entry.deadlineMs = Math.min(entry.deadlineMs, performance.now());
      if (this.#isOutside(entry)) this.#endBefore(entry, 'timeout');
    }, timeLimitMs);
    return timer.unref();
  }

  /** The engine does not have it: it waits here. */
  #isOutside(entry: HostEntry): boolean {
    return entry.isQueued || this.#adapters.has(entry) || this.#resumption.has(entry);
  }

  /** Ends a request that is not in the engine. */
  #endBefore(entry: HostEntry, reason: 'cancelled' | 'timeout'): void {
    this.#formations.noteEnd(entry, reason);
    this.#forget(entry);
    entry.pieces.finish(reason);
  }

  /** Fails a request that the engine does not have. */
  #fail(entry: HostEntry, error: Error): void {
    this.#formations.noteEnd(entry, 'error');
    this.#forget(entry);
    entry.pieces.fail(error);
  }

  /** Forgets a request whose sequences have all ended though the engine has not said so. */
  #finish(entry: HostEntry): void {
    this.#formations.noteEnd(entry, 'stop');
    this.#forget(entry);
  }

  /** The requests that the engine gets now: those of a lost engine go before all others, which wait while one of them is on trial. */
  #dequeue(max: number): InferenceRequest[] {
    const roomFor = (...taken: HostEntry[][]) => (max < 0 ? max : max - taken.flat().length);
    const fingerprint = this.#manager.info?.fingerprint ?? '';
    const first = this.#adapters.takeNext(max, this.#resumption.onTrial);
    const lost = this.#resumption.takeNext(roomFor(first), fingerprint);
    const mayJoin = this.#resumption.onTrial === null && this.#resumption.size === 0;
    const taken = mayJoin ? this.#queue.take(roomFor(first, lost)) : [];
    const nowMs = performance.now();
    this.#pace.note(taken.length, nowMs);
    for (const entry of taken) entry.isQueued = false;
    const sent = this.#adapters.send([...first, ...lost, ...taken]);
    return sent.map((request) => {
      const { inputs, requestId } = request;
      const entry = this.#entries.get(requestId)!;
      entry.engine = fingerprint;
      const limit = inputs.time_limit_ms;
      if (limit) limit.data[0] = Math.max(1, Math.ceil(entry.deadlineMs - nowMs));
      if (entry.left.size > 0) queueMicrotask(() => this.#stopLeft(entry));
      return withRows(request, entry);
    });
  }

  /** Ends the sequences that were left before the engine had the request, which it has now. */
  #stopLeft({ request: { requestId, inputs }, left }: HostEntry): void {
    if (Number(inputs.beam_width?.data[0] ?? 1) > 1) return;
    for (const index of left) this.#manager.stopSequence(requestId, index);
  }

  /** The engine was lost with these requests. */
  #lose(requestIds: readonly bigint[], why: RequestFailure): void {
    this.#adapters.forgetSent();
    for (const requestId of requestIds) {
      const entry = this.#entries.get(requestId);
      if (entry === undefined) continue;
      if (this.#resumes && why.kind !== 'ended') this.#resumption.lose(entry, why);
      else this.#fail(entry, RequestError.of(why));
    }
  }

  #noteTurns({ began, paused }: TurnChanges): void {
    for (const [ids, isWaiting] of [
      [began, false],
      [paused, true],
    ] as const) {
      for (const requestId of ids) {
        const entry = this.#entries.get(requestId);
        if (entry === undefined) continue;
        entry.isWaiting = entry.isPaused = isWaiting;
        if (!isWaiting) entry.firstScheduledMs ??= performance.now();
      }
    }
  }

  #takeStops(): Set<bigint> {
    const stops = new Set(this.#stops);
    this.#stops.clear();
    return stops;
  }

  #respond(requestId: bigint, outputs: NamedTensor[], final: boolean, failure: RequestFailure | null): void {
    const entry = this.#entries.get(requestId);
    if (!entry) return;
    if (failure !== null && this.#sendsAgain(entry, failure)) return;
    const why = failure === null ? null : inHostsWords(entry, failure);
    if (!final) this.#adapters.foundRoom(entry);
    if (final) this.#forget(entry);
    if (why !== null) entry.pieces.fail(RequestError.of(why));
    else this.#noteTaken(entry, entry.pieces.push(outputs, final));
    if (final) {
      const reason = why === null ? finishReasonIn(outputs) : 'error';
      this.#formations.noteEnd(entry, entry.isWhole && reason === 'cancelled' ? 'stop' : reason);
    }
  }

  #noteTaken(entry: HostEntry, taken: Taken): void {
    if (taken === 'new') {
      entry.faults.gain();
      entry.firstTokenMs ??= performance.now();
    } else if (taken === 'other') this.#diverge(entry);
  }

  /** The engine computes again what another one had, and finds other tokens. */
  #diverge(entry: HostEntry): void {
    const { requestId } = entry.request;
    const isRunning = this.#entries.has(requestId);
    const why =
      'The engine was lost, and the next one gave other tokens for the request, though they should be equal: its answer cannot go on.';
    if (isRunning) this.#fail(entry, RequestError.of(failure('internal', why)));
    else entry.pieces.fail(RequestError.of(failure('internal', why)));
    if (!isRunning) return;
    this.#stops.add(requestId);
    this.#manager.wake();
  }

  /**
   * The engine does not hold the request's adapter any more, or has no room for it: the request goes there once more, with the weights. Where
   * others have the room, it waits until one of them ends.
   */
  #sendsAgain(entry: HostEntry, failure: RequestFailure): boolean {
    const refusal = this.#adapters.refusalOf(entry, failure);
    if (refusal === null) return false;
    const others = this.running - this.#adapters.numNext - 1;
    // The timer of a request that was on its way there or back has found it in no queue.
    if (entry.isCancelled) this.#endBefore(entry, 'cancelled');
    else if (performance.now() >= entry.deadlineMs) this.#endBefore(entry, 'timeout');
    else if (refusal === 'no room' && others > 0) this.#adapters.park(entry);
    else this.#adapters.sendAgain(entry);
    return true;
  }

  #forget(entry: HostEntry): void {
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.release();
    this.#entries.delete(entry.request.requestId);
    this.#stops.delete(entry.request.requestId);
    this.#adapters.end(entry);
    this.#resumption.end(entry);
    if (entry.isQueued) this.#queue.remove(entry);
    else this.#queue.settle(entry, entry.pieces.usedTokens);
    if (this.#entries.size === 0) this.#onEmpty?.();
  }

  #cancelAll(): void {
    for (const requestId of [...this.#entries.keys()]) this.cancel(requestId);
  }

  async #whenEmpty(): Promise<void> {
    if (this.#entries.size === 0) return;
    const before = this.#onEmpty;
    await new Promise<void>((resolve) => {
      this.#onEmpty = () => {
        before?.();
        resolve();
      };
    });
  }

  /** The options with a second listener for missing ranks: this host. */
  #listened(ranks: RanksOptions): RanksOptions {
    return {
      ...ranks,
      onMissing: (missing) => {
        this.#hold(missing);
        ranks.onMissing?.(missing);
      },
    };
  }

  /**
   * Ranks may never come back: requests fail at once until they are there. Those that the lost ranks had wait for them for as long as ranks
   * wait for one another at the first start.
   */
  #hold(missing: MissingRanks): void {
    this.#whyHeld = this.state === 'restarting' ? whyHeld(missing) : null;
    if (this.#whyHeld === null) {
      this.#resumption.endLimit();
      return;
    }
    this.#resumption.limitWait(this.#joinTimeoutMs, this.#whyHeld);
    this.#failAll(this.#whyHeld, (entry) => !this.#resumption.has(entry));
  }

  /** Fails all waiting requests with the reason why the engine is gone. */
  #failRest(): void {
    const { failure } = this;
    this.#failAll(failure === null ? 'The engine was shut down.' : `The engine failed: ${failure.message}`);
  }

  #failAll(why: string, isMeant: (entry: HostEntry) => boolean = () => true): void {
    for (const entry of [...this.#entries.values()]) {
      if (!isMeant(entry)) continue;
      this.#forget(entry);
      entry.pieces.fail(new HostClosedError(why));
    }
  }
}
