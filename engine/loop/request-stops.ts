import { FINISH_CANCELLED, FINISH_TIMED_OUT } from '../../callbacks/response-batch.js';
import type { SequenceStop } from '../../callbacks/worker-messages.js';
import type { LoopCallbacks } from '../intake/loop-callbacks.js';
import type { IterationPlanner } from '../iteration-planner.js';
import type { ActiveRequests } from '../request/active-requests.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';

/**
 * Ends requests from outside, whatever state they are in: by a stop signal, or at their time limit. One in flight ends
 * after its step: at the end of the next iteration.
 */
export class RequestStops {
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #scheme: BatchingScheme;
  readonly #callbacks: LoopCallbacks;
  readonly #planner: IterationPlanner;
  /** Signals for requests in flight. */
  #deferred = new Set<bigint>();
  #deferredSequences: SequenceStop[] = [];

  constructor(
    active: ActiveRequests<LlmRequest>,
    scheme: BatchingScheme,
    callbacks: LoopCallbacks,
    planner: IterationPlanner,
  ) {
    this.#planner = planner;
    this.#active = active;
    this.#scheme = scheme;
    this.#callbacks = callbacks;
  }

  pollSignals(): void {
    const inFlight = new Set<bigint>();
    for (const requestId of this.#deferred) this.#stop(requestId, inFlight);
    for (const requestId of this.#callbacks.pollStopSignals()) this.#stop(requestId, inFlight);
    this.#deferred = inFlight;
    const sequences = [...this.#deferredSequences, ...(this.#callbacks.pollSequenceStops?.() ?? [])];
    this.#deferredSequences = sequences.filter((stop) => !this.#stopSequence(stop));
  }

  /**
   * Stops one sequence. Returns false if that is not possible now because its request is in flight. Sequences whose
   * context has not ended still share one table.
   */
  #stopSequence({ requestId, index }: SequenceStop): boolean {
    const request = this.#active.get(requestId);
    if (request?.inFlight) return false;
    if (request === undefined || request.isComplete) return true;
    const parents = request.stopSequence(index, FINISH_CANCELLED);
    if (parents !== null && request.phase === 'generation') this.#planner.fork(request, parents);
    return true;
  }

  #stop(requestId: bigint, inFlight: Set<bigint>): void {
    const request = this.#active.get(requestId);
    if (request?.inFlight) inFlight.add(requestId);
    else if (request && this.#isUnanswered(request)) request.stop(FINISH_CANCELLED);
  }

  endOverdue(nowMs: number): void {
    for (const request of this.#active.ordered) {
      if (nowMs < request.deadlineMs || request.inFlight) continue;
      if (this.#isUnanswered(request)) request.stop(FINISH_TIMED_OUT);
    }
  }

  /** True if the request still runs or waits for its batch: a stop can cut it short. */
  #isUnanswered(request: LlmRequest): boolean {
    return !request.isComplete || this.#scheme.holds(request);
  }
}
