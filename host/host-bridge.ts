import { messageOf } from '../base/error-text.js';
import { CallbackError, callGuarded, promiseOf, tellGuarded } from '../base/guarded-calls.js';
import { compact, idsIn, PENDING_PER_SEQUENCE, requestsIn } from '../callbacks/given-values.js';
import type { FunctionCallbacks, IterationStats } from '../callbacks/gpt-manager-options.js';
import { failure, notAskedFor, type RequestFailure, shuttingDown } from '../callbacks/request-failure.js';
import { refusedId } from '../callbacks/request-id-error.js';
import type { TokenPiece } from '../callbacks/token-request.js';
import type { InferenceRequest } from '../callbacks/types.js';
import { failedResponse, type Response, ResponseReader, sendTo } from '../callbacks/unpack-responses.js';
import type { HostMessage, TurnChanges, WorkerMessage } from '../callbacks/worker-messages.js';
import type { KvCacheEvent } from '../kvcache/cache-events.js';

type IterationMessage = Extract<WorkerMessage, { type: 'iteration' }>;

/** Connection to the worker that runs now. */
export interface BridgeConnection {
  /** Sends a message. Throws where it cannot be copied to the worker. @param transfer see WorkerLink.post */
  post(message: HostMessage, transfer?: readonly ArrayBuffer[]): void;
}

/**
 * Takes, instead of sendResponse, responses that hold only new tokens and so need no tensors. The piece has log-probs
 * where the request asked for them; `sequence` is 0 where the request has one.
 */
export type SendNewTokens = (requestId: bigint, sequence: number, piece: TokenPiece) => void;

/** What the in-process host receives besides the callbacks. */
export interface InProcessCalls {
  sendNewTokens: SendNewTokens;
  /** The worker was lost with these requests: no final response of theirs follows. */
  lose(requestIds: readonly bigint[], why: RequestFailure): void;
  /** Requests take turns between waiting and running in the iteration that begins. */
  noteTurns(turns: TurnChanges): void;
  /** True where the memory of a request's prompt_embedding_table is the engine's. */
  givesTable(requestId: bigint): boolean;
}

export interface HostBridgeOptions {
  connection: BridgeConnection;
  callbacks: FunctionCallbacks;
  inProcess?: InProcessCalls | undefined;
  maxSeqLen: number;
  maxNumSequences: number;
  /** Most requests that wait in the worker for their first step; default: as many as it has places. */
  maxWaitingRequests?: number | undefined;
  /** Milliseconds between polls while nothing is active; 0: only `wake` polls. */
  idlePollIntervalMs: number;
  /** Id of a request that is not run but asks for the end: `onTerminate` is called. It is not answered. */
  terminateReqId?: bigint | undefined;
  onTerminate?: (() => void) | undefined;
  /** Called with failures. Must not throw. */
  onError: (error: Error) => void;
  onIterationStats?: ((stats: IterationStats) => unknown) | undefined;
  onKvCacheEvents?: ((events: KvCacheEvent[]) => unknown) | undefined;
}

/**
 * The host's end of the bridge between the worker and callbacks that are functions of the host's thread.
 *
 *   worker --- responses of an iteration, freePlaces, received ---> host: sendResponse for each, in order
 *   worker <-- requests, stop signals, then a ring of the doorbell --- host: getInferenceRequests(max)
 *
 * Credits: max = freePlaces - (posted - received), the number that the worker can still take in addition to
 * those on their way. One call of getInferenceRequests is under way at a time. While more than
 * PENDING_PER_SEQUENCE x maxNumSequences promises of sendResponse are unsettled, no requests are taken; what
 * is already active goes on, so a host that stops settling them holds at most the tokens of the requests that
 * were active then.
 *
 * Whatever a callback throws, or its promise is rejected with, goes to onError, and everything else
 * continues. A promise of getInferenceRequests or pollStopSignals that never settles brings nothing more;
 * what is in flight continues, and ends.
 *
 * Between a worker that died and the next one the bridge is disconnected: no callback is asked, and requests that a
 * pending promise still brings wait here for the next worker.
 */
export class HostBridge {
  readonly #options: HostBridgeOptions;
  readonly #inFlight = new Set<bigint>();
  readonly #maxPending: number;
  #freePlaces: number;
  #posted = 0;
  #received = 0;
  #pendingResponses = 0;
  #isPulling = false;
  #isPolling = false;
  #pullAgain = false;
  #isOpen = true;
  #isTerminateAsked = false;
  /** Connection to the worker; null while there is no worker. */
  #connection: BridgeConnection | null;
  /** Messages that wait for the next worker. */
  #held: HostMessage[] = [];
  #idleTimer: NodeJS.Timeout | null = null;

  constructor(options: HostBridgeOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#freePlaces = this.#placesAtFirst();
    this.#maxPending = PENDING_PER_SEQUENCE * options.maxNumSequences;
  }

  /** Number of requests given to the worker whose final response has not come. */
  get numInFlight(): number {
    return this.#inFlight.size;
  }

  /** Asks the callbacks for stop signals and, with credit, for requests, and sends their answers at once. */
  wake(): void {
    this.#poll();
  }

  /** Ends one sequence of a request that is in flight. */
  stopSequence(requestId: bigint, index: number): void {
    if (this.#inFlight.has(requestId)) this.#post({ type: 'stopSequence', stop: { requestId, index } });
  }

  /** Takes no more requests; stop signals still go through. */
  stopTaking(): void {
    this.#isOpen = false;
    this.#clearIdleTimer();
  }

  /** Takes no more requests, and ends each one in flight with this failure. */
  failAll(why: RequestFailure): void {
    this.stopTaking();
    this.#failInFlight(why);
  }

  /**
   * Handles the loss of the worker: each request in flight ends with this failure, or is left to the
   * in-process host, which continues it.
   */
  disconnect(why: RequestFailure): void {
    this.#connection = null;
    this.#clearIdleTimer();
    const { inProcess, onError } = this.#options;
    if (inProcess === undefined) this.#failInFlight(why);
    else {
      const requestIds = this.#forgetInFlight();
      callGuarded({ callback: 'lose' }, () => inProcess.lose(requestIds, why), onError);
    }
  }

  /** Connects the next worker, which has nothing active. */
  connect(connection: BridgeConnection): void {
    this.#connection = connection;
    this.#posted = 0;
    this.#received = 0;
    this.#freePlaces = this.#placesAtFirst();
    for (const message of this.#held.splice(0)) {
      if (message.type === 'requests') this.#postRequests(message.requests);
      else this.#post(message);
    }
    this.#poll();
  }

  /** Free places of a worker with nothing active. */
  #placesAtFirst(): number {
    const { maxNumSequences, maxWaitingRequests } = this.#options;
    return Math.min(maxNumSequences, maxWaitingRequests ?? maxNumSequences);
  }

  #failInFlight(why: RequestFailure): void {
    for (const requestId of this.#forgetInFlight()) this.#fail(requestId, why);
  }

  /** Ids of the requests in flight, which are none any more. */
  #forgetInFlight(): bigint[] {
    const requestIds = [...this.#inFlight];
    this.#inFlight.clear();
    this.#held = [];
    return requestIds;
  }

  handleIteration(message: IterationMessage): void {
    this.#received = message.received;
    this.#freePlaces = message.freePlaces;
    if (message.draining) this.stopTaking();
    if (message.responses !== null) {
      this.#sendAll(new ResponseReader(message.responses, this.#options.maxSeqLen));
    }
    this.#reportStats(message);
    this.#poll();
  }

  noteTurns(turns: TurnChanges): void {
    this.#options.inProcess?.noteTurns(turns);
  }

  #sendAll(responses: ResponseReader): void {
    const { sendNewTokens } = this.#options.inProcess ?? {};
    while (responses.next()) {
      if (sendNewTokens !== undefined && responses.isOnlyTokens) {
        const { requestId, sequenceIndex } = responses;
        const send = () => sendNewTokens(requestId, sequenceIndex, responses.newTokens());
        callGuarded({ callback: 'sendNewTokens', requestId }, send, this.#options.onError);
        continue;
      }
      const response = responses.unpack();
      if (response.final) this.#inFlight.delete(response.requestId);
      this.#send(response);
    }
  }

  /** Polls for requests, then for stop signals: a stop signal for one of these requests then finds it in flight. */
  #poll(): void {
    this.#pull();
    this.#pollStops();
    this.#scheduleIdlePoll();
  }

  #reportStats({ json, stats, kvEvents }: IterationMessage): void {
    const { callbacks, onIterationStats, onKvCacheEvents } = this.#options;
    const { returnBatchManagerStats } = callbacks;
    if (json !== null && returnBatchManagerStats) {
      this.#tell('returnBatchManagerStats', () => returnBatchManagerStats(json));
    }
    if (stats !== null && onIterationStats) this.#tell('onIterationStats', () => onIterationStats(stats));
    if (kvEvents && onKvCacheEvents) this.#tell('onKvCacheEvents', () => onKvCacheEvents(kvEvents));
  }

  #tell(callback: string, call: () => unknown): void {
    tellGuarded({ callback }, call, this.#options.onError);
  }

  #fail(requestId: bigint, why: RequestFailure): void {
    this.#send(failedResponse(requestId, why));
  }

  #send(response: Response): void {
    const { callbacks, onError } = this.#options;
    const name = { callback: 'sendResponse', requestId: response.requestId };
    const send = () => sendTo((...told) => callbacks.sendResponse(...told), response);
    const pending = promiseOf(callGuarded(name, send, onError));
    if (pending === null) return;
    this.#pendingResponses++;
    void pending
      .catch((reason: unknown) => onError(CallbackError.of(name, reason)))
      .finally(() => {
        this.#pendingResponses--;
        if (this.#pendingResponses === this.#maxPending - 1) this.#pull();
      });
  }

  #pollStops(): void {
    const { callbacks, onError } = this.#options;
    const { pollStopSignals } = callbacks;
    if (!pollStopSignals || this.#isPolling || this.#connection === null) return;
    const name = { callback: 'pollStopSignals' };
    this.#isPolling = true;
    const stops = callGuarded(name, pollStopSignals, onError);
    const pending = promiseOf(stops);
    if (pending === null) {
      callGuarded(name, () => this.#postStops(stops), onError);
      this.#isPolling = false;
      return;
    }
    void pending
      .then((requestIds) => this.#postStops(requestIds))
      .catch((reason: unknown) => onError(CallbackError.of(name, reason)))
      .finally(() => {
        this.#isPolling = false;
      });
  }

  #postStops(stops: unknown): void {
    const requestIds = idsIn(stops).filter((requestId) => this.#inFlight.has(requestId));
    if (requestIds.length > 0) this.#post({ type: 'stop', requestIds });
  }

  #pull(): void {
    if (this.#isPulling) {
      this.#pullAgain = true;
      return;
    }
    const max = this.#credits();
    if (!this.#isOpen || max <= 0) return;
    const { callbacks, onError } = this.#options;
    this.#isPulling = true;
    this.#pullAgain = false;
    const requests = callGuarded(PULLING, () => callbacks.getInferenceRequests(max), onError);
    const pending = promiseOf(requests);
    if (pending === null) {
      callGuarded(PULLING, () => this.#take(requests, max), onError);
      this.#isPulling = false;
      // A callback that called wake() is polled again, but not inside of itself, where the credits are not counted yet.
      if (this.#pullAgain) setImmediate(() => this.#pull());
      return;
    }
    void pending
      .then((given) => this.#take(given, max))
      .catch((reason: unknown) => onError(CallbackError.of(PULLING, reason)))
      .finally(() => {
        this.#isPulling = false;
        if (this.#pullAgain) this.#pull();
        this.#scheduleIdlePoll();
      });
  }

  #credits(): number {
    if (this.#pendingResponses >= this.#maxPending || this.#connection === null) return 0;
    return this.#freePlaces - (this.#posted - this.#received);
  }

  /**
   * Takes requests from a callback. Each goes to the worker, or is refused by its id, or reported to onError. Throws if
   * the value is no array.
   */
  #take(requests: unknown, max: number): void {
    const taken: InferenceRequest[] = [];
    const wasOpen = this.#isOpen;
    for (const request of requestsIn(requests)) {
      callGuarded(PULLING, () => this.#takeOne(request, taken, max), this.#options.onError);
    }
    if (taken.length > 0) this.#postRequests(taken);
    // The end is requested after the requests that came before it.
    if (wasOpen && this.#isTerminateAsked) this.#options.onTerminate?.();
  }

  #takeOne(given: unknown, taken: InferenceRequest[], max: number): void {
    const { requestId } = (given ?? {}) as Partial<InferenceRequest>;
    const wrongId = refusedId(requestId, this.#inFlight);
    if (wrongId !== null) {
      this.#options.onError(wrongId);
      return;
    }
    if (requestId === this.#options.terminateReqId) {
      this.#isTerminateAsked = true;
      this.stopTaking();
      return;
    }
    const refusal = this.#whyRefused(taken.length < max ? null : max);
    if (refusal !== null) {
      this.#fail(requestId!, refusal);
      return;
    }
    try {
      taken.push(compact(given as InferenceRequest));
      this.#inFlight.add(requestId!);
    } catch (error) {
      this.#fail(requestId!, notSent(error));
    }
  }

  #whyRefused(exceededMax: number | null): RequestFailure | null {
    if (!this.#isOpen) return shuttingDown();
    return exceededMax === null ? null : notAskedFor(exceededMax);
  }

  #postRequests(requests: InferenceRequest[]): void {
    if (this.#connection === null) {
      this.#held.push({ type: 'requests', requests });
      return;
    }
    try {
      this.#posted += requests.length;
      this.#post({ type: 'requests', requests }, this.#givenTables(requests));
    } catch (error) {
      this.#posted -= requests.length;
      if (requests.length > 1) {
        for (const request of requests) this.#postRequests([request]);
        return;
      }
      const { requestId } = requests[0]!;
      this.#inFlight.delete(requestId);
      this.#fail(requestId, notSent(error));
    }
  }

  /** Memory that goes to the worker with the requests. */
  #givenTables(requests: readonly InferenceRequest[]): ArrayBuffer[] {
    const { inProcess } = this.#options;
    return requests.flatMap(({ requestId, inputs }) => {
      const table = inputs.prompt_embedding_table;
      return table && inProcess?.givesTable(requestId) ? [table.data.buffer as ArrayBuffer] : [];
    });
  }

  #post(message: HostMessage, transfer?: readonly ArrayBuffer[]): void {
    if (this.#connection === null) {
      this.#held.push(message);
      return;
    }
    this.#connection.post(message, transfer);
  }

  #clearIdleTimer(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#idleTimer = null;
  }

  /** Schedules a poll while the worker is idle; while it is active, each of its messages leads to a poll. */
  #scheduleIdlePoll(): void {
    const { idlePollIntervalMs } = this.#options;
    if (!this.#isOpen || this.#idleTimer !== null || idlePollIntervalMs <= 0) return;
    if (this.#connection === null) return;
    if (this.#inFlight.size > 0 || this.#isPulling) return;
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = null;
      this.wake();
    }, idlePollIntervalMs);
    this.#idleTimer.unref();
  }
}

function notSent(error: unknown): RequestFailure {
  return failure('internal', `The request cannot be sent to the engine: ${messageOf(error)}`);
}

const PULLING = { callback: 'getInferenceRequests' };
