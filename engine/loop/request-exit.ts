import type { ResponseWriter } from '../../callbacks/response-writer.js';
import type { ActiveRequests } from '../active-requests.js';
import type { IterationPlanner } from '../iteration-planner.js';
import type { LlmRequest } from '../llm-request.js';
import type { IterationCounts } from '../loop-statistics.js';
import type { RopeTable } from '../rope-table.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';

/** Where answers leave, and requests with their last one. */
export class RequestExit {
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #scheme: BatchingScheme;
  readonly #planner: IterationPlanner;
  readonly #rope: RopeTable;
  readonly #responses: ResponseWriter;

  constructor(
    parts: { planner: IterationPlanner; scheme: BatchingScheme; rope: RopeTable },
    active: ActiveRequests<LlmRequest>,
    responses: ResponseWriter,
  ) {
    this.#active = active;
    this.#scheme = parts.scheme;
    this.#planner = parts.planner;
    this.#rope = parts.rope;
    this.#responses = responses;
  }

  /** Frees what has ended before its final response is written; then streams what is new. */
  respond(counts: IterationCounts): void {
    const isHeld = (request: LlmRequest) => this.#scheme.holds(request);
    this.#active.removeComplete(isHeld, (request) => this.#retire(request, counts));
    for (const request of this.#active.ordered) {
      if (request.timing.numIterations === 0) counts.queuedRequests++;
      if (request.spec.streaming && request.numGenerated > request.numSent) {
        this.#responses.add(request, false);
      }
    }
  }

  #retire(request: LlmRequest, counts: IterationCounts): void {
    if (request.error === '') this.#planner.keep(request);
    this.#planner.release(request);
    this.#rope.release(request.ropeRow);
    counts.completedRequests++;
    counts.replayMismatches += request.replayMismatches;
    this.#responses.add(request, true);
  }
}
