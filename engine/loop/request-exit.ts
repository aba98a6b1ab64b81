import type { RopeTable } from '../batch/rope-table.js';
import type { ResponseWriter } from '../intake/response-writer.js';
import type { IterationPlanner } from '../iteration-planner.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { ActiveRequests } from '../request/active-requests.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { ReturnedLogitsBudget } from '../request/returned-logits.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';
import type { DraftStage } from './draft-stage.js';
import type { GuidedDecoding } from './guided-decoding.js';
import type { IterationCounts } from './loop-statistics.js';

/** Parts of the loop from which a leaving request is removed, and through which it is answered. */
export interface ExitParts {
  active: ActiveRequests<LlmRequest>;
  scheme: BatchingScheme;
  planner: IterationPlanner;
  rope: RopeTable;
  logitsBudget: ReturnedLogitsBudget;
  guided: GuidedDecoding;
  drafts: DraftStage | null;
  /** null: requests have no adapters. */
  adapters: PeftCacheManager | null;
  responses: ResponseWriter;
}

/** Sends answers, and removes requests with their last one. */
export class RequestExit {
  readonly #parts: ExitParts;

  constructor(parts: ExitParts) {
    this.#parts = parts;
  }

  /** Frees ended requests before their final response is written; then streams new tokens and progress. */
  respond(counts: IterationCounts): void {
    const { active, scheme, responses } = this.#parts;
    const isHeld = (request: LlmRequest) => scheme.holds(request);
    active.removeComplete(isHeld, (request) => this.#retire(request, counts));
    counts.queuedRequests = 0;
    for (const request of active.ordered) {
      if (request.timing.numIterations === 0) counts.queuedRequests++;
      if (request.spec.streaming && (request.hasNews || request.hasProgress)) responses.add(request, false);
    }
  }

  #retire(request: LlmRequest, counts: IterationCounts): void {
    const { planner, drafts, adapters, rope, logitsBudget, guided, responses } = this.#parts;
    if (request.failure === null) planner.keep(request);
    planner.release(request);
    drafts?.release(request);
    if (request.adapter !== null) adapters?.release(request.adapter);
    rope.release(request.ropeRow);
    logitsBudget.release(request.spec);
    guided.close(request);
    counts.completedRequests++;
    counts.replayMismatches += request.replayMismatches;
    responses.add(request, true);
  }
}
