import type { KvCacheManager, SharedPrefix } from '../kvcache/kv-cache-manager.js';
import { scheduleCapacity } from '../scheduler/capacity-scheduler.js';
import type { ContextPace } from '../scheduler/context-pace.js';
import { type MicroBatchScheduler, scheduleMicroBatch } from '../scheduler/micro-batch-scheduler.js';
import type { ResumeLimits } from '../scheduler/pause.js';
import type {
  CapacityPolicy,
  MicroBatchLimits,
  SchedulableRequest,
  ScheduledChunk,
} from '../scheduler/types.js';
import type { RequestProgress } from './request/request-progress.js';

export interface PlannerOptions extends ResumeLimits {
  policy: CapacityPolicy;
  /** Default scheduleMicroBatch; V1 brings its own. */
  scheduleMicroBatch?: MicroBatchScheduler;
  /** Most requests that run at once. */
  maxNumSequences: number;
  /** Whether all that was written to these blocks is finite; false where that cannot be said now. */
  areFinite(blocks: Int32Array): boolean;
  /** MAX_UTILIZATION: see CapacityOptions. */
  startHorizon?: number | undefined;
  /** Keeps chunks short; needs chunking. */
  pace?: ContextPace | null | undefined;
}

/** Parts the requests that can run into micro-batches: see engine/loop/micro-batch-split.ts. */
export interface Split {
  /** How many of `withCapacity` requests run now while `inFlight` others do; 0: none until those have ended. */
  mostRequests(withCapacity: number, inFlight: number): number;
}

export interface IterationPlan<R extends RequestProgress> {
  /** What runs; context chunks first. */
  chunks: ScheduledChunk<R>[];
  /** What was paused for it, last in the list first. */
  paused: R[];
}

/**
 * The part of an iteration that needs no model: who runs how many tokens, who is paused for it, who holds which
 * blocks. The generation loop and the simulator share it.
 *
 *   plan(active)    capacity -> pauses give their blocks back -> micro-batch -> chunks
 *   allocate(r)     for each chunk, in order: the blocks of its step
 *   (the step runs, or is imagined)
 *   rejectDraft(r)  where it had a draft
 *   fork(r)         where its sequences part, end or go on from one another
 *   keep(r)         for each context that is complete: its full blocks may be shared; so are those of a paused one
 *   release(r)      for each request that is complete
 */
export class IterationPlanner {
  readonly #options: PlannerOptions;
  readonly #kvCache: KvCacheManager;

  constructor(options: PlannerOptions, kvCache: KvCacheManager) {
    this.#options = options;
    this.#kvCache = kvCache;
  }

  /**
   * Decides the iteration for the active list, in its order. Requests to be paused are paused; who does not run waits.
   * `split`, where requests may be in flight: how many of those with capacity the next micro-batch takes at most; with 0
   * nothing is changed.
   */
  plan<R extends RequestProgress>(active: readonly R[], split: Split | null = null): IterationPlan<R> {
    const { policy, maxNumSequences, microBatch } = this.#options;
    const schedule = this.#options.scheduleMicroBatch ?? scheduleMicroBatch;
    for (const request of active) this.#lookUp(request);
    const capacity = this.#kvCache.capacity();
    const { scheduled, paused } = scheduleCapacity(policy, active, capacity, maxNumSequences, this.#options);
    const mostRequests = split?.mostRequests(scheduled.length, inFlight(active)) ?? microBatch.maxBatchSize;
    if (mostRequests === 0) return { chunks: [], paused: [] };
    for (const request of paused) {
      this.keep(request);
      this.#kvCache.freeSequence(request.requestId);
      request.pause(this.#options);
    }
    const maxBatchSize = Math.min(microBatch.maxBatchSize, mostRequests);
    const turns = split !== null && Number.isFinite(mostRequests) ? 2 : 1;
    const chunks = schedule(scheduled, { ...this.#paced(active, scheduled, turns), maxBatchSize });
    for (const request of active) if (!request.inFlight) request.waitedIterations++;
    for (const request of scheduled) request.passedOver++;
    for (const { request } of chunks) {
      request.waitedIterations--;
      request.passedOver = 0;
    }
    return { chunks, paused };
  }

  /** The limits of the micro-batch, with no more context tokens than there is time for. The pace does not change meanwhile. */
  #paced<R extends RequestProgress>(
    active: readonly R[],
    scheduled: readonly R[],
    turns: 1 | 2,
  ): MicroBatchLimits {
    const { microBatch, pace } = this.#options;
    if (!pace || !microBatch.chunking) return microBatch;
    const maxContextTokens = pace.mostContextTokens(active, scheduled, turns);
    const isAlone = active.length === 1;
    const longestChunk = (request: SchedulableRequest) => pace.longestChunk(request, turns, isAlone);
    return { ...microBatch, chunking: { ...microBatch.chunking, maxContextTokens, longestChunk } };
  }

  /**
   * Gives a request of the plan the blocks of its step. A context that finds its beginning in the cache begins behind
   * it, and its first chunk may be shorter for it. False, and nothing changed, if there is no room.
   */
  allocate(request: RequestProgress): boolean {
    const { requestId } = request;
    if (request.phase === 'generation') {
      if (!this.#kvCache.growSequence(requestId, request.numTokens + request.draftLength)) return false;
    } else if (request.contextPosition === 0) {
      const shared = this.sharedOf(request) ?? undefined;
      if (!this.#kvCache.addSequence(requestId, request.promptLength, shared, request.beamWidth))
        return false;
      request.beginContext(this.#kvCache.reuseOf(requestId));
    }
    request.blocksHeld = this.#kvCache.blocksHeld(requestId);
    return true;
  }

  /**
   * Keeps the full blocks of what is verified for other requests, and for this one after a pause: where it has drawn,
   * all that went into finite logits; between two chunks what has been written, if it is finite.
   */
  keep(request: RequestProgress): void {
    const shared = this.sharedOf(request);
    if (shared === null) return;
    const numVerified = request.phase === 'context' ? this.#verifiedContext(request) : request.numVerified;
    if (numVerified > 0) this.#kvCache.store(request.requestId, shared.tokens, numVerified);
  }

  /** What the request shares with others; null: nothing, since it does not want to or the cache cannot. */
  sharedOf(request: RequestProgress): SharedPrefix | null {
    return this.#kvCache.canShare(request.finalLength) ? request.shared : null;
  }

  /** Between two chunks no logits have shown yet that all is well, so the blocks themselves are looked at. */
  #verifiedContext({ requestId, contextPosition }: RequestProgress): number {
    if (contextPosition < this.#kvCache.tokensPerBlock) return 0;
    const blocks = this.#kvCache.fullBlocks(requestId, contextPosition);
    return this.#options.areFinite(blocks) ? contextPosition : 0;
  }

  /** Gives back the blocks of the draft that the step rejected, all behind the `kept` first tokens of the sequence. */
  rejectDraft(request: RequestProgress, kept: number): void {
    if (request.phase !== 'generation' || request.draftLength === 0) return;
    this.#kvCache.trimSequence(request.requestId, kept);
    request.blocksHeld = this.#kvCache.blocksHeld(request.requestId);
  }

  /** Sequence i of the request goes on from what was its sequence parents[i]: see KvCacheManager.forkSequences. */
  fork(request: RequestProgress, parents: readonly number[]): void {
    this.#kvCache.forkSequences(request.requestId, parents);
    request.blocksHeld = this.#kvCache.blocksHeld(request.requestId);
  }

  /** Takes back the blocks of a request that has ended, after `keep` where they are worth it. */
  release(request: RequestProgress): void {
    this.#kvCache.freeSequence(request.requestId);
  }

  /** Only where the cache or the prompt has changed since the last look: many may wait, and for long. */
  #lookUp(request: RequestProgress): void {
    const version = this.#kvCache.cacheVersion;
    if (request.phase === 'generation') request.firstMissingBlock = null;
    else if (request.firstMissingAsOf !== version) {
      const shared = this.sharedOf(request);
      request.firstMissingBlock = shared && this.#kvCache.firstMissingBlock(shared, request.promptLength);
      request.firstMissingAsOf = version;
    }
  }
}

function inFlight(active: readonly RequestProgress[]): number {
  return active.reduce((count, request) => count + (request.inFlight ? 1 : 0), 0);
}
