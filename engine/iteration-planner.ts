import type { KvCacheManager, SharedPrefix } from '../kvcache/kv-cache-manager.js';
import { scheduleCapacity } from '../scheduler/tokens/capacity-scheduler.js';
import type { ContextPace } from '../scheduler/tokens/context-pace.js';
import { type MicroBatchScheduler, scheduleMicroBatch } from '../scheduler/tokens/micro-batch-scheduler.js';
import type { ResumeLimits } from '../scheduler/tokens/pause.js';
import type {
  AdapterCapacity,
  CapacityPolicy,
  MicroBatchLimits,
  SchedulableRequest,
  ScheduledChunk,
} from '../scheduler/tokens/types.js';
import type { RequestProgress } from './request/request-progress.js';

export interface PlannerOptions extends ResumeLimits {
  policy: CapacityPolicy;
  /** Default: scheduleMicroBatch; V1 brings its own. */
  scheduleMicroBatch?: MicroBatchScheduler;
  /** Most requests that run at once. */
  maxNumSequences: number;
  /** True if all values in these blocks, and in these slots for states, are finite; false if that is unknown at the moment. */
  areFinite(blocks: Int32Array, stateSlots: Int32Array): boolean;
  /** MAX_UTILIZATION: see CapacityOptions. */
  startHorizon?: number | undefined;
  /** Room for the requests' adapters; absent or null: it does not limit who runs. */
  adapters?: AdapterCapacity | null | undefined;
  /** Keeps chunks short; needs chunking. */
  pace?: ContextPace | null | undefined;
}

/** Divides the requests that can run into micro-batches: see engine/loop/micro-batch-split.ts. */
export interface Split {
  /** Most micro-batches that take turns. */
  readonly parts: number;
  /** Most of `withCapacity` requests that may run now while `inFlight` others do; 0: none until those have ended. */
  mostRequests(withCapacity: number, inFlight: number): number;
}

export interface IterationPlan<R extends RequestProgress> {
  /** Chunks that run; context chunks first. */
  chunks: ScheduledChunk<R>[];
  /** Requests that were paused for it, last in the list first. */
  paused: R[];
}

/**
 * The part of an iteration that needs no model: it decides which requests run how many tokens, which are paused, and
 * which hold which blocks. The generation loop and the simulator share it.
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
   * Decides the iteration for the active list, in its order. Requests to be paused are paused; those that do not run
   * wait. `split`, given if requests may be in flight, limits how many of those with capacity the next micro-batch
   * takes; at 0 nothing is changed.
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
    const turns = split !== null && Number.isFinite(mostRequests) ? split.parts : 1;
    const chunks = schedule(scheduled, { ...this.#paced(active, scheduled, turns), maxBatchSize });
    for (const request of active) if (!request.inFlight) request.waitedIterations++;
    for (const request of scheduled) request.passedOver++;
    for (const { request } of chunks) {
      request.waitedIterations--;
      request.passedOver = 0;
    }
    return { chunks, paused };
  }

  /** The limits of the micro-batch, with no more context tokens than there is time for. The pace must not change meanwhile. */
  #paced<R extends RequestProgress>(
    active: readonly R[],
    scheduled: readonly R[],
    turns: number,
  ): MicroBatchLimits {
    const { microBatch, pace } = this.#options;
    if (!pace || !microBatch.chunking) return microBatch;
    const maxContextTokens = pace.mostContextTokens(active, scheduled, turns);
    // Only iterations with contexts ask: what iterations cost is learned again for the first that does.
    let chunkMs: number | undefined;
    const longestChunk = (request: SchedulableRequest) => {
      chunkMs ??= pace.chunkMs(active, scheduled, turns);
      return pace.longestChunk(request, chunkMs);
    };
    return { ...microBatch, chunking: { ...microBatch.chunking, maxContextTokens, longestChunk } };
  }

  /**
   * Gives a request of the plan the blocks of its step. A context that finds its beginning in the cache
   * starts after it, and its first chunk may become shorter. Returns false and changes nothing if there is no
   * room.
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
   * Keeps the full blocks of verified tokens for other requests, and for this one after a pause. Verified are, once the
   * request draws, all tokens whose logits were finite; between two chunks, all that have been written, if they are
   * finite.
   */
  keep(request: RequestProgress): void {
    const shared = this.sharedOf(request);
    if (shared === null) return;
    const numVerified = request.phase === 'context' ? this.#verifiedContext(request) : request.numVerified;
    if (numVerified > 0) this.#kvCache.store(request.requestId, shared.tokens, numVerified);
  }

  /** Data by which the request shares blocks with others; null if the request does not want to or the cache cannot. */
  sharedOf(request: RequestProgress): SharedPrefix | null {
    return this.#kvCache.canShare(request.finalLength) ? request.shared : null;
  }

  /** Between two chunks no logits have shown yet that the values are finite, so the blocks themselves are checked. */
  #verifiedContext({ requestId, contextPosition }: RequestProgress): number {
    if (contextPosition < this.#kvCache.tokensPerBlock) return 0;
    const blocks = this.#kvCache.fullBlocks(requestId, contextPosition);
    const states = this.#kvCache.states?.pendingSlots(requestId) ?? new Int32Array(0);
    return this.#options.areFinite(blocks, states) ? contextPosition : 0;
  }

  /** Gives back the blocks of a rejected draft, all after the first `kept` tokens of the sequence. */
  rejectDraft(request: RequestProgress, kept: number): void {
    if (request.phase !== 'generation' || request.draftLength === 0) return;
    this.#kvCache.trimSequence(request.requestId, kept);
    request.blocksHeld = this.#kvCache.blocksHeld(request.requestId);
  }

  /** Sequence i of the request goes on from its former sequence parents[i]: see KvCacheManager.forkSequences. */
  fork(request: RequestProgress, parents: readonly number[]): void {
    this.#kvCache.forkSequences(request.requestId, parents);
    request.blocksHeld = this.#kvCache.blocksHeld(request.requestId);
  }

  /** Frees the blocks of a request that has ended; to be called after `keep` if they are worth keeping. */
  release(request: RequestProgress): void {
    this.#kvCache.freeSequence(request.requestId);
  }

  /**
   * Looks up a request's blocks, but only if the cache or the prompt has changed since the last look-up: many requests
   * may wait, and for long.
   */
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
