import type { TraceAttributes, TraceSpan } from '../../callbacks/infer/trace-span.js';
import type { Fall } from '../../host/attempt-faults.js';
import type { RequestNames } from '../nats/request-names.js';
import { type ItemTrace, traceOf } from '../nats/trace-context.js';
import type { DirectAnswer } from '../routing/model-routing.js';

/** Where an attempt goes. */
export interface TracedRoute {
  pool: string;
  /** null: any worker may take it. */
  worker: string | null;
  isPrefill: boolean;
}

/** Requests of one client's request that have spans; the others are as these. */
const MAX_REQUESTS = 16;

/** Of client's requests that are traced, how many of theirs have spans. */
const numRequests = new WeakMap<TraceSpan, number>();

/**
 * The attempts of a request in its trace, a span each:
 *
 *   attempt 1  |-- queue --|-- route --|   the worker's spans   x lost
 *   attempt 2                                                   |-- queue --|-- route --|   the other worker's   |
 *
 * `queue` is until a place was found for it, `route` until a worker said that it has it. An attempt is linked with the one before it.
 */
export class RequestTrace {
  readonly #parent: TraceSpan;
  readonly #about: TraceAttributes;
  #number = 0;
  #attempt: TraceSpan;
  /** The part that lasts; null: a worker has the request. */
  #part: TraceSpan | null = null;
  /** The present attempt is. */
  #isOver = false;

  private constructor(parent: TraceSpan, { requestId, request }: RequestNames, nowMs: number) {
    this.#parent = parent;
    this.#about = {
      'skein.queue.request': request,
      ...(requestId === undefined ? {} : { 'skein.request_id': requestId }),
    };
    this.#attempt = this.#begin(nowMs, []);
  }

  /** null: the request is not traced, or belongs to one with spans enough. @param parent span of the client's request */
  static begin(parent: TraceSpan | undefined, about: RequestNames, nowMs: number): RequestTrace | null {
    if (parent === undefined) return null;
    const count = numRequests.get(parent) ?? 0;
    if (count >= MAX_REQUESTS) return null;
    numRequests.set(parent, count + 1);
    return new RequestTrace(parent, about, nowMs);
  }

  /** What the worker gets, whose spans are below the attempt's. */
  get context(): ItemTrace {
    return traceOf(this.#attempt);
  }

  #begin(nowMs: number, links: readonly TraceSpan[]): TraceSpan {
    this.#number++;
    this.#isOver = false;
    const about = { ...this.#about, 'skein.attempt': this.#number };
    this.#attempt = this.#parent.child(`attempt ${this.#number}`, nowMs, about, links, 'client');
    this.#part = this.#attempt.child('queue', nowMs);
    return this.#attempt;
  }

  /** A place was found for it. */
  onRoute({ pool, worker, isPrefill }: TracedRoute): void {
    const nowMs = performance.now();
    this.#part?.end(nowMs);
    this.#attempt.set({ 'skein.pool': pool, ...(isPrefill ? { 'skein.is_prefill': true } : {}) });
    this.#part = this.#attempt.child('route', nowMs, {
      'skein.route': worker === null ? 'stream' : 'chosen',
      ...(worker === null ? {} : { 'skein.route.worker': worker }),
    });
  }

  /** What became of the choice. Blocks: leading ones of the prompt that the worker's cache has, and those that it could have. */
  onRouted(answer: DirectAnswer, { cachedBlocks, blocks }: { cachedBlocks: number; blocks: number }): void {
    this.#attempt.set({ 'skein.route.cached_blocks': cachedBlocks, 'skein.route.blocks': blocks });
    if (answer !== 'taken') this.#part?.event(`not taken: ${answer}`, performance.now());
  }

  /** A worker has it. */
  onLease(worker: string): void {
    this.#attempt.set({ 'skein.worker': worker });
    this.#part?.end();
    this.#part = null;
  }

  /** The attempt was given up, or was of the prompt alone. @param reason the worker's own words */
  onFall(why: Fall, reason: string | null, numTokens: number): void {
    this.#endAttempt(why, numTokens, why === 'moved' ? null : (reason ?? `the attempt ended: ${why}`));
  }

  /** The next attempt waits from now on. */
  onAgain(nowMs: number): void {
    this.#begin(nowMs, [this.#attempt]);
  }

  /** @param outcome 'answered', or what became of it instead */
  onEnd(outcome: 'answered' | 'cancelled' | 'timeout' | 'error', numTokens: number): void {
    this.#endAttempt(outcome, numTokens, outcome === 'error' ? 'the request failed' : null);
  }

  #endAttempt(outcome: string, numTokens: number, fault: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#part?.end();
    this.#part = null;
    this.#attempt.set({ 'skein.outcome': outcome, 'skein.accepted_tokens': numTokens });
    if (fault !== null) this.#attempt.fail(fault);
    this.#attempt.end();
  }
}
