import type { RopeTable } from '../batch/rope-table.js';
import type { ResponseWriter } from '../intake/response-writer.js';
import type { IterationPlanner } from '../iteration-planner.js';
import type { ActiveRequests } from '../request/active-requests.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { ReturnedLogitsBudget } from '../request/returned-logits.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';
import type { DraftPolicy } from '../speculation/draft-policy.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { IterationCounts } from './loop-statistics.js';

/** What a request gives back when it leaves. */
export interface ExitParts {
  planner: IterationPlanner;
  scheme: BatchingScheme;
  rope: RopeTable;
  logitsBudget: ReturnedLogitsBudget;
  guided: GuidedDecoding;
  drafts: DraftPolicy | null;
}

/** Where answers leave, and requests with their last one. */
export class RequestExit {
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #scheme: BatchingScheme;
  readonly #planner: IterationPlanner;
  readonly #rope: RopeTable;
  readonly #logitsBudget: ReturnedLogitsBudget;
  readonly #guided: GuidedDecoding;
  readonly #drafts: DraftPolicy | null;
  readonly #responses: ResponseWriter;

  constructor(parts: ExitParts, active: ActiveRequests<LlmRequest>, responses: ResponseWriter) {
    this.#active = active;
    this.#scheme = parts.scheme;
    this.#planner = parts.planner;
    this.#rope = parts.rope;
    this.#logitsBudget = parts.logitsBudget;
    this.#guided = parts.guided;
    this.#drafts = parts.drafts;
    this.#responses = responses;
  }

  /** Frees what has ended before its final response is written; then streams what is new. */
  respond(counts: IterationCounts): void {
    const isHeld = (request: LlmRequest) => this.#scheme.holds(request);
    this.#active.removeComplete(isHeld, (request) => this.#retire(request, counts));
    counts.queuedRequests = 0;
    for (const request of this.#active.ordered) {
      if (request.timing.numIterations === 0) counts.queuedRequests++;
      if (request.spec.streaming && request.hasNews) {
        this.#responses.add(request, false);
      }
    }
  }

  #retire(request: LlmRequest, counts: IterationCounts): void {
    if (request.error === '') this.#planner.keep(request);
    this.#planner.release(request);
    this.#drafts?.release(request);
    this.#rope.release(request.ropeRow);
    this.#logitsBudget.release(request.spec);
    this.#guided.close(request);
    counts.completedRequests++;
    counts.replayMismatches += request.replayMismatches;
    this.#responses.add(request, true);
  }
}
