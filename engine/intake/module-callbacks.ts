import { messageOf } from '../../base/error-text.js';
import { CallbackError, type CallbackName, callGuarded, promiseOf } from '../../base/guarded-calls.js';
import { idsIn, isRequestId, PENDING_PER_SEQUENCE, requestsIn } from '../../callbacks/given-values.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import { failure, type RequestFailure, shuttingDown } from '../../callbacks/request-failure.js';
import { RequestIdError } from '../../callbacks/request-id-error.js';
import type { CallbackModule, InferenceRequest } from '../../callbacks/types.js';
import { failedResponse, type Response, sendTo, unpackResponses } from '../../callbacks/unpack-responses.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import type { IterationReport, LoopCallbacks } from './loop-callbacks.js';

/** Reports that go to the manager's thread even if the callbacks are a module. */
export interface ModuleHost {
  /**
   * Requests that the module brought: if the worker dies, the next worker informs its copy of the module that
   * they have ended.
   */
  reportTaken(requestIds: bigint[]): void;
  /** Requests whose final response the module is about to get, or that are refused as duplicates. */
  reportAnswered(requestIds: bigint[]): void;
  reportError(error: Error): void;
  reportStats(stats: IterationStats): void;
  reportKvEvents(events: KvCacheEvent[]): void;
}

export interface ModuleLimits {
  maxSeqLen: number;
  maxNumSequences: number;
  /** The id that asks for the end: it is no request, and its end is not reported. */
  terminateReqId: bigint | null;
}

const PULLING = { callback: 'getInferenceRequests' };
const POLLING = { callback: 'pollStopSignals' };

/**
 * Calls the callbacks of a module that was imported into the worker directly. If one returns a promise, it is awaited
 * between iterations (`turn`), like the bridge awaits those of the host's thread: only one call of getInferenceRequests and
 * one of pollStopSignals is pending at a time, and no more requests are taken while very many promises of the other
 * callbacks are unsettled. Errors and rejections are reported; the loop and the other callbacks go on.
 */
export class ModuleLoopCallbacks implements LoopCallbacks {
  readonly wantsStatsJson: boolean;
  readonly #module: CallbackModule;
  readonly #limits: ModuleLimits;
  readonly #host: ModuleHost;
  /** Results of promises that have settled since the last call. */
  #brought: InferenceRequest[] = [];
  #stops: bigint[] = [];
  #isPulling = false;
  #isPolling = false;
  #hasEnded = false;
  #numPending = 0;
  #numSettled = 0;
  #onSettled: () => void = () => {};

  constructor(module: CallbackModule, limits: ModuleLimits, host: ModuleHost) {
    this.#module = module;
    this.#limits = limits;
    this.#host = host;
    this.wantsStatsJson = module.returnBatchManagerStats !== undefined;
  }

  /** True while promises of the module are unsettled: they need the thread's event loop. */
  get hasPending(): boolean {
    return this.#numPending > 0;
  }

  getInferenceRequests(max: number): readonly InferenceRequest[] {
    if (this.#brought.length > 0) return this.#brought.splice(0);
    if (this.#isPulling || this.#numPending >= PENDING_PER_SEQUENCE * this.#limits.maxNumSequences) return [];
    const given = this.#guard(PULLING, () => this.#module.getInferenceRequests(max));
    const pending = promiseOf(given);
    if (pending === null) return this.#guard(PULLING, () => this.#checked(given)) ?? [];
    this.#isPulling = true;
    const taking = pending.then((later) => this.#bring(this.#checked(later)));
    this.#track(PULLING, taking, () => {
      this.#isPulling = false;
    });
    return [];
  }

  pollStopSignals(): Iterable<bigint> {
    const { pollStopSignals } = this.#module;
    const stops = this.#stops.splice(0);
    if (pollStopSignals === undefined || this.#isPolling) return stops;
    const given = this.#guard(POLLING, () => pollStopSignals());
    const pending = promiseOf(given);
    if (pending === null) {
      this.#guard(POLLING, () => stops.push(...idsIn(given)));
      return stops;
    }
    this.#isPolling = true;
    const taking = pending.then((later) => void this.#stops.push(...idsIn(later)));
    this.#track(POLLING, taking, () => {
      this.#isPolling = false;
    });
    return stops;
  }

  endIteration({ responses, stats, json, kvEvents }: IterationReport): void {
    for (const response of unpackResponses(responses, this.#limits.maxSeqLen)) this.#send(response);
    const { returnBatchManagerStats, onKvCacheEvents } = this.#module;
    if (json !== null && returnBatchManagerStats) {
      this.#tell({ callback: 'returnBatchManagerStats' }, () => returnBatchManagerStats(json));
    }
    if (kvEvents && onKvCacheEvents) {
      this.#tell({ callback: 'onKvCacheEvents' }, () => onKvCacheEvents(kvEvents));
    }
    if (stats !== null) this.#host.reportStats(stats);
    if (kvEvents) this.#host.reportKvEvents(kvEvents);
  }

  /** Sends final responses for requests of the module's former life, whose worker died. */
  failLost(requestIds: readonly bigint[], reason: string): void {
    for (const requestId of requestIds) this.#fail(requestId, failure('internal', reason));
  }

  reportError(error: Error): void {
    if (error instanceof RequestIdError && error.reason === 'duplicate') {
      this.#host.reportAnswered([error.requestId!]);
    }
    this.#host.reportError(error);
  }

  /**
   * Gives the event loop a turn. If `timeoutMs` is above 0, waits until a promise settles or the time is over. Returns
   * true if one settled.
   */
  async turn(timeoutMs: number): Promise<boolean> {
    const before = this.#numSettled;
    await new Promise((resolve) => setImmediate(resolve));
    if (timeoutMs <= 0 || this.#numSettled > before) return this.#numSettled > before;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeoutMs);
      this.#onSettled = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** Called when the loop has ended: waits a while for pending promises, and refuses requests that they still bring. */
  async end(timeoutMs: number): Promise<void> {
    const untilMs = performance.now() + timeoutMs;
    this.#hasEnded = true;
    this.#refuse(this.#brought.splice(0));
    while (this.hasPending && performance.now() < untilMs) await this.turn(untilMs - performance.now());
  }

  #bring(requests: readonly InferenceRequest[]): void {
    if (this.#hasEnded) this.#refuse(requests);
    else this.#brought = [...this.#brought, ...requests];
  }

  #refuse(requests: readonly InferenceRequest[]): void {
    for (const { requestId } of requests) {
      if (!isRequestId(requestId) || requestId === this.#limits.terminateReqId) continue;
      this.#fail(requestId, shuttingDown());
    }
  }

  /**
   * Returns the requests that can be read. Throws if it is given no array. Entries that are no requests are reported, and one
   * that cannot be read is refused by its id.
   */
  #checked(given: unknown): InferenceRequest[] {
    const requests: InferenceRequest[] = [];
    for (const one of requestsIn(given)) this.#guard(PULLING, () => this.#check(one, requests));
    const ids = requests.map(({ requestId }) => requestId);
    const taken = ids.filter((id) => isRequestId(id) && id !== this.#limits.terminateReqId);
    if (taken.length > 0) this.#host.reportTaken(taken);
    return requests;
  }

  #check(given: unknown, requests: InferenceRequest[]): void {
    if (typeof given !== 'object' || given === null) {
      throw new Error(`it gave ${String(given)} among the requests`);
    }
    const request = given as InferenceRequest;
    const { requestId } = request;
    try {
      requests.push({ ...request, requestId, inputs: request.inputs });
    } catch (error) {
      if (!isRequestId(requestId)) throw error;
      requests.push(unreadableRequest(requestId, error));
    }
  }

  #send(response: Response): void {
    const { requestId } = response;
    if (response.final) this.#host.reportAnswered([requestId]);
    this.#tell({ callback: 'sendResponse', requestId }, () =>
      sendTo((...told) => this.#module.sendResponse(...told), response),
    );
  }

  #fail(requestId: bigint, why: RequestFailure): void {
    this.#send(failedResponse(requestId, why));
  }

  #guard<T>(name: CallbackName, call: () => T): T | undefined {
    return callGuarded(name, call, (error) => this.reportError(error));
  }

  #tell(name: CallbackName, call: () => unknown): void {
    const pending = promiseOf(this.#guard(name, call));
    if (pending !== null) this.#track(name, pending, () => {});
  }

  #track(name: CallbackName, pending: Promise<unknown>, done: () => void): void {
    this.#numPending++;
    void pending
      .catch((reason: unknown) => this.reportError(CallbackError.of(name, reason)))
      .finally(() => {
        this.#numPending--;
        this.#numSettled++;
        done();
        this.#onSettled();
      });
  }
}

/** Stands for a request that cannot be read. The loop refuses it, by an error if its id belongs to an active request. */
function unreadableRequest(requestId: bigint, error: unknown): InferenceRequest {
  return {
    requestId,
    get inputs(): InferenceRequest['inputs'] {
      throw new Error(`The request cannot be read: ${messageOf(error)}`);
    },
  };
}

/** Collects the callbacks that a module exports. Throws an error naming the missing one. */
export function callbacksOfModule(exports: Record<string, unknown>, url: string): CallbackModule {
  for (const name of ['getInferenceRequests', 'sendResponse']) {
    if (typeof exports[name] !== 'function') {
      throw new Error(`The callback module ${url} does not export the function ${name}, which is required.`);
    }
  }
  for (const name of ['pollStopSignals', 'returnBatchManagerStats', 'onKvCacheEvents']) {
    if (exports[name] !== undefined && typeof exports[name] !== 'function') {
      throw new Error(
        `The callback module ${url} exports ${name} as ${typeof exports[name]}; a function is expected.`,
      );
    }
  }
  return exports as unknown as CallbackModule;
}
