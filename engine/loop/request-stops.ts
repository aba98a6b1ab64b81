import type { LoopCallbacks } from '../../callbacks/loop-callbacks.js';
import type { ActiveRequests } from '../active-requests.js';
import { FINISH_CANCELLED, FINISH_TIMED_OUT } from '../decoding/finish-reason.js';
import type { LlmRequest } from '../llm-request.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';

/** What ends a request from outside, whatever state it is in: a stop signal, or its time limit. */
export class RequestStops {
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #scheme: BatchingScheme;
  readonly #callbacks: LoopCallbacks;

  constructor(active: ActiveRequests<LlmRequest>, scheme: BatchingScheme, callbacks: LoopCallbacks) {
    this.#active = active;
    this.#scheme = scheme;
    this.#callbacks = callbacks;
  }

  pollSignals(): void {
    for (const requestId of this.#callbacks.pollStopSignals()) {
      const request = this.#active.get(requestId);
      if (request && this.#isUnanswered(request)) request.finishReason = FINISH_CANCELLED;
    }
  }

  endOverdue(nowMs: number): void {
    for (const request of this.#active.ordered) {
      if (nowMs >= request.deadlineMs && this.#isUnanswered(request)) request.finishReason = FINISH_TIMED_OUT;
    }
  }

  /** It goes on, or waits for its batch: there is something that a stop can cut short. */
  #isUnanswered(request: LlmRequest): boolean {
    return !request.isComplete || this.#scheme.holds(request);
  }
}
