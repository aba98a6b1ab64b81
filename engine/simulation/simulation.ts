import { MAX_INT32 } from '../../base/int32.js';
import { worded } from '../../base/named-text.js';
import { AttentionWindow } from '../../kvcache/attention-window.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../../scheduler/tokens/admission.js';
import type { AdapterCapacity, CapacityPolicy, MicroBatchLimits } from '../../scheduler/tokens/types.js';
import { IterationPlanner } from '../iteration-planner.js';
import { ActiveRequests } from '../request/active-requests.js';
import { type SimulatedArrival, SimulatedRequest } from './simulated-request.js';
import { SimulatedTokens } from './simulated-tokens.js';

export interface SimulationOptions {
  policy: CapacityPolicy;
  numBlocks: number;
  tokensPerBlock: number;
  /** Most requests that run at once; any number may be in the list. */
  maxNumRequests: number;
  microBatch: MicroBatchLimits;
  /** See KvCacheOptions; default false. */
  enableBlockReuse?: boolean;
  /** Most events of cached blocks that are kept until kvCache.drainEvents is called; default 0. */
  maxEvents?: number;
  /** See KvCacheOptions. */
  maxAttentionWindow?: number;
  sinkTokenLength?: number;
  /** Longest prompt, also of a resumed request; absent: only the pool limits it. */
  maxInputLen?: number;
  /** See OptionalParams. */
  maxWaitIterations?: number | undefined;
  startHorizon?: number | undefined;
  /** Room for adapters; absent: any number of them. No adapter of a request may need more. */
  adapters?: AdapterCapacity | undefined;
}

/** One request's part in an iteration. */
export interface SimulatedStep {
  requestId: bigint;
  phase: 'context' | 'generation';
  /**
   * Context tokens in the cache before and after the step, including those that a first chunk found there; while
   * generating both are the prompt's length.
   */
  contextBefore: number;
  contextAfter: number;
  /** Number of tokens it has generated after the step, over all its runs. */
  generated: number;
}

export interface SimulatedIteration {
  /** The list as the capacity scheduler gets it. */
  active: bigint[];
  /** Steps that ran, context first. */
  steps: SimulatedStep[];
  /** Paused requests, last in the list first. */
  paused: bigint[];
  /** Requests that ended in this iteration, in list order. */
  finished: SimulatedRequest[];
  /**
   * Blocks after this iteration's allocation, before finished requests give theirs back. `reused` counts from the
   * start.
   */
  blocks: { free: number; used: number; reused: number };
  /** Blocks handed out in this iteration. */
  newBlocks: number[];
}

/**
 * The token generation loop without a model: the same list, planner, schedulers and block manager, and requests that
 * become one token longer whenever a model would draw one. `simulate` reads files into it.
 */
export class Simulation {
  readonly kvCache: KvCacheManager;
  readonly limits: AdmissionLimits;
  readonly #planner: IterationPlanner;
  readonly #active: ActiveRequests<SimulatedRequest>;
  readonly #drained: Int32Array;
  readonly #tokens: SimulatedTokens | null;
  /** Most requests whose every step fits into an iteration while all of them generate. */
  readonly #mostSteady: number;

  constructor(options: SimulationOptions) {
    const { enableBlockReuse = false, startHorizon, adapters } = options;
    const { numBlocks, tokensPerBlock, policy, microBatch, maxNumRequests: maxNumSequences } = options;
    this.kvCache = new KvCacheManager({ ...options, maxSeqLen: longestSequence(options), enableBlockReuse });
    this.#tokens = enableBlockReuse ? new SimulatedTokens() : null;
    this.limits = {
      maxInputLen: options.maxInputLen ?? Number.POSITIVE_INFINITY,
      maxSeqLen: Number.POSITIVE_INFINITY,
      numBlocks,
      tokensPerBlock,
      maxAttentionWindow: this.kvCache.cachedTokensPerSequence,
      microBatch,
    };
    // Without a model no values can be NaN.
    this.#planner = new IterationPlanner(
      { ...this.limits, policy, maxNumSequences, startHorizon, adapters, areFinite: () => true },
      this.kvCache,
    );
    this.#active = new ActiveRequests(options.maxWaitIterations);
    this.#drained = new Int32Array(numBlocks);
    const { maxBatchSize, maxNumTokens, maxSequences = maxBatchSize } = microBatch;
    // In a window a step may write over a block: then the planner decides.
    const isUnbroken = options.maxAttentionWindow === undefined && adapters === undefined;
    this.#mostSteady = isUnbroken ? Math.min(maxNumSequences, maxBatchSize, maxNumTokens, maxSequences) : 0;
  }

  /** The list, in the order in which the schedulers walk it. */
  get active(): readonly SimulatedRequest[] {
    return this.#active.ordered;
  }

  /** Puts the request into the list after those of its priority; returns the reason if it could never run. */
  arrive(arrival: SimulatedArrival): string | null {
    const request = new SimulatedRequest(arrival, this.#tokens);
    const refusal = whyItCanNeverRun(request, this.limits);
    if (refusal === null) this.#active.add(request);
    return refusal && worded(refusal.text);
  }

  /** Throws if schedulers and block manager disagree: a step without a block, or an iteration that runs nothing. */
  iterate(): SimulatedIteration {
    this.#active.promoteAged();
    const ordered = this.#active.ordered;
    const active = ordered.map((request) => request.requestId);
    const { chunks, paused } = this.#planner.plan(ordered);
    if (active.length > 0 && chunks.length === 0 && paused.length === 0) {
      throw new Error(
        `Nothing could be scheduled although nothing was running; request ${active[0]} was first.`,
      );
    }
    for (const { request, contextTokens } of chunks) {
      request.chunkLength = contextTokens;
      if (this.#planner.allocate(request)) continue;
      throw new Error(`Request ${request.requestId} was scheduled, but its step finds no block.`);
    }
    const newBlocks = Array.from(this.#drained.subarray(0, this.kvCache.drainNewBlocks(this.#drained)));
    // There is no memory to copy; this only empties the manager's list of copies.
    this.kvCache.drainCopies();
    const { freeBlocks: free, usedBlocks: used, reusedBlocks: reused } = this.kvCache.stats();
    const steps = chunks.map(({ request }) => this.#step(request));
    const finished: SimulatedRequest[] = [];
    const isHeld = () => false;
    this.#active.removeComplete(isHeld, (request) => {
      this.#planner.keep(request);
      this.#planner.release(request);
      finished.push(request);
    });
    const pausedIds = paused.map((request) => request.requestId);
    const blocks = { free, used, reused };
    return { active, steps, paused: pausedIds, finished, blocks, newBlocks };
  }

  /**
   * Number of iterations ahead in which each request becomes a token longer and nothing else happens: none of them waits, ends, or
   * opens a block. 0: the next iteration has to be planned.
   *
   *   tokensPerBlock 4      | a b c d | e f . .      2 steps have room in the block: e f g h
   *   maxNewTokens 3 ahead  | a b c d | e . . .      2 steps before its last one
   */
  steadyIterations(): number {
    const { ordered } = this.#active;
    if (ordered.length === 0 || ordered.length > this.#mostSteady) return 0;
    let most = Number.POSITIVE_INFINITY;
    for (const request of ordered) {
      const { phase, beamWidth, longestDraft, blocksHeld, numTokens } = request;
      if (phase !== 'generation' || beamWidth > 1 || longestDraft > 0 || request.adapter !== null) return 0;
      const roomInBlock = blocksHeld * this.kvCache.tokensPerBlock - numTokens + 1;
      most = Math.min(most, request.stepsBeforeLast, roomInBlock);
      if (most <= 0) return 0;
    }
    return most;
  }

  /**
   * Runs the iterations of steadyIterations at once, at most `most`, as iterate would one by one. Returns how
   * many.
   */
  skipWhileSteady(most: number): number {
    const count = Math.min(most, this.steadyIterations());
    if (count <= 0) return 0;
    this.#active.promoteAged();
    for (const request of this.#active.ordered) {
      if (!this.kvCache.growSequence(request.requestId, request.numTokens + count - 1)) {
        throw new Error(`Request ${request.requestId} has room in its block, but its table does not grow.`);
      }
      request.passedOver = 0;
      request.finishSteps(count);
    }
    return count;
  }

  #step(request: SimulatedRequest): SimulatedStep {
    const { requestId, phase, contextPosition: contextBefore } = request;
    this.#planner.rejectDraft(request, request.numTokens);
    request.finishStep();
    if (phase === 'context' && request.phase === 'generation') this.#planner.keep(request);
    const { contextPosition: contextAfter, generated } = request;
    return { requestId, phase, contextBefore, contextAfter, generated };
  }
}

/** Longest sequence that the pool can hold: any length if it holds a window, unless that is the whole pool anyway. */
function longestSequence(options: SimulationOptions): number {
  const { numBlocks, tokensPerBlock, maxAttentionWindow, sinkTokenLength } = options;
  const wholePool = numBlocks * tokensPerBlock;
  if (maxAttentionWindow === undefined) return wholePool;
  const window = new AttentionWindow({ maxAttentionWindow, sinkTokenLength, tokensPerBlock });
  return window.maxBlocks <= numBlocks ? MAX_INT32 : wholePool;
}
