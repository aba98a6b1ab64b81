import type { LoopCallbacks } from '../callbacks/loop-callbacks.js';
import { validateRequest, whyIdIsInvalid } from '../callbacks/request-validation.js';
import { ResponseWriter } from '../callbacks/response-writer.js';
import type { InferenceRequest } from '../callbacks/types.js';
import type { KvCacheManager, KvCacheStats } from '../kvcache/kv-cache-manager.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../scheduler/admission.js';
import type { MicroBatchLimits, ScheduledChunk, SchedulerPolicy } from '../scheduler/types.js';
import { ActiveRequests } from './active-requests.js';
import { BatchFormer } from './batch-former.js';
import { FINISH_CANCELLED, FINISH_TIMED_OUT } from './decoding/finish-reason.js';
import { ROW_OK, type SamplingOutput } from './decoding/sampling-batch.js';
import { ParameterError } from './decoding/sampling-params.js';
import { createSamplingOutput } from './decoding/sampling-rows.js';
import type { Executor } from './executor.js';
import type { IterationStats, ModelType, StatsFormat } from './gpt-manager-options.js';
import { IterationPlanner } from './iteration-planner.js';
import { iterationStatsJson } from './iteration-stats-json.js';
import { LlmRequest } from './llm-request.js';
import { batchManagerStatsJson, LoopStatistics, noCounts } from './loop-statistics.js';
import type { RopeTable } from './rope-table.js';
import type { BatchingScheme } from './schemes/batching-scheme.js';
import { createScheme } from './schemes/index.js';
import { paddingRoom } from './schemes/padding-room.js';

export interface LoopOptions {
  /** Default InflightFusedBatching. V1 needs an executor with room for padding: see paddingRoom. */
  modelType?: ModelType;
  schedulerPolicy: SchedulerPolicy;
  microBatch: MicroBatchLimits;
  /** Requests that can be active at once. */
  maxNumSequences: number;
  maxInputLen: number;
  maxSeqLen: number;
  maxBeamWidth: number;
  maxTopLogProbs: number;
  /** Default BatchManager. */
  statsFormat?: StatsFormat;
  /** A request with this id ends the loop once nothing is active. */
  terminateReqId?: bigint;
  /** Checks the KV cache after every iteration. */
  checkIntegrity?: boolean;
}

/** What the loop needs of the world around it; tests bring their own. */
export interface LoopEnvironment {
  executor: Executor;
  kvCache: KvCacheManager;
  rope: RopeTable;
  callbacks: LoopCallbacks;
  /** Milliseconds since the epoch, monotonic. */
  clock: () => number;
  drawSeed: () => bigint;
}

/** The token generation loop: one call of `iterate` is one iteration. It knows nothing of threads. */
export class GenerationLoop {
  readonly #options: LoopOptions;
  readonly #world: LoopEnvironment;
  readonly #admission: AdmissionLimits;
  readonly #modelType: ModelType;
  readonly #scheme: BatchingScheme;
  readonly #active = new ActiveRequests<LlmRequest>();
  readonly #planner: IterationPlanner;
  readonly #batch: BatchFormer;
  readonly #output: SamplingOutput;
  readonly #responses = new ResponseWriter();
  readonly #statistics: LoopStatistics;
  #counts = noCounts();
  #isDraining = false;

  constructor(options: LoopOptions, world: LoopEnvironment) {
    const { kvCache } = world;
    const { tokensPerBlock } = kvCache;
    const { maxNumTokens, maxBatchSize } = options.microBatch;
    this.#modelType = options.modelType ?? 'InflightFusedBatching';
    this.#scheme = createScheme(this.#modelType, options.schedulerPolicy, options.maxSeqLen);
    const padding = paddingRoom(this.#modelType, { maxBatchSize, maxNumTokens, tokensPerBlock });
    this.#options = options;
    this.#world = world;
    this.#batch = new BatchFormer(
      { maxNumTokens, maxNumSequences: maxBatchSize, maxPaddingSequences: padding.sequences },
      kvCache,
      world.rope,
    );
    this.#output = createSamplingOutput(maxBatchSize, options.maxTopLogProbs);
    this.#statistics = new LoopStatistics(options.maxNumSequences);
    this.#admission = {
      maxInputLen: options.maxInputLen,
      maxSeqLen: options.maxSeqLen,
      microBatch: options.microBatch,
      numBlocks: kvCache.numBlocks,
      tokensPerBlock,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
    };
    const { maxNumSequences } = options;
    const { capacityPolicy: policy, scheduleMicroBatch } = this.#scheme;
    const planning = { ...this.#admission, policy, scheduleMicroBatch, maxNumSequences };
    this.#planner = new IterationPlanner(planning, kvCache);
  }

  /** Requests that could be taken now. */
  get freePlaces(): number {
    return this.#options.maxNumSequences - this.#active.size;
  }

  get activeRequests(): number {
    return this.#active.size;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** From now on new requests are refused; what is active goes on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** One iteration. False if nothing was active and there was nothing to send. */
  iterate(): boolean {
    const startMs = this.#world.clock();
    this.#counts = noCounts();
    this.#world.kvCache.advanceClock(startMs);
    this.#receiveRequests();
    const chunks = this.#schedule();
    for (const call of this.#scheme.calls(chunks)) {
      this.#prepare(call);
      if (this.#step(call)) this.#update(call);
    }
    const blocks = this.#world.kvCache.stats();
    this.#pollStopSignals();
    this.#endOverdue();
    this.#respond();
    return this.#report(blocks, startMs);
  }

  #receiveRequests(): void {
    const max = this.#isDraining ? 0 : this.freePlaces;
    const requests = this.#world.callbacks.getInferenceRequests(max);
    for (const [index, request] of requests.entries()) {
      const refusal = this.#whyIdIsRefused(request) ?? this.#whyThereIsNoPlace(index, max);
      if (refusal !== null) this.#refuse(request, refusal);
      else if (request.requestId === this.#options.terminateReqId) this.drain();
      else this.#admit(request);
    }
  }

  #whyIdIsRefused({ requestId }: InferenceRequest): string | null {
    if (!this.#active.has(requestId)) return whyIdIsInvalid(requestId);
    return `A request with the id ${requestId} is being processed; this one is refused and that one goes on.`;
  }

  #whyThereIsNoPlace(index: number, max: number): string | null {
    if (this.#isDraining) return 'The manager is shutting down and takes no more requests.';
    return index < max
      ? null
      : `Only ${max} requests were asked for; this one came beyond them and is refused.`;
  }

  #admit(request: InferenceRequest): void {
    try {
      const { vocabSize } = this.#world.executor;
      const spec = validateRequest(request, { ...this.#options, vocabSize }, this.#world.drawSeed);
      const admitted = new LlmRequest(spec, this.#world.clock());
      const impossible = whyItCanNeverRun(admitted, this.#admission);
      if (impossible !== null) throw new ParameterError('input_ids', impossible);
      admitted.ropeRow = this.#world.rope.assign(admitted.promptLength + admitted.maxNewTokens);
      this.#active.add(admitted);
      this.#counts.newRequests++;
      this.#counts.newRequestsQueueMs += this.#world.clock() - admitted.timing.arrivalMs;
    } catch (error) {
      this.#refuse(request, messageOf(error), error instanceof ParameterError);
    }
  }

  /** A final response with the reason; where not even the id can be used, only the error hook hears of it. */
  #refuse(request: InferenceRequest, why: string, isInvalid = false): void {
    if (whyIdIsInvalid(request.requestId) === null)
      this.#responses.addError(request.requestId, why, isInvalid);
    else this.#world.callbacks.reportError(new Error(why));
  }

  /** Who runs how many tokens now; who has to pause gives its blocks back first. */
  #schedule(): ScheduledChunk<LlmRequest>[] {
    this.#counts.activeRequests = this.#active.size;
    if (this.#active.size === 0) return [];
    const { chunks, paused } = this.#planner.plan(this.#active.running);
    this.#counts.pausedRequests = paused.length;
    if (chunks.length === 0 && paused.length === 0) this.#failStuckRequest();
    return chunks;
  }

  /** Cannot happen as long as admission and schedulers agree; if they do not, one request fails instead of all hanging. */
  #failStuckRequest(): void {
    const head = this.#active.ordered[0]!;
    head.error = 'Nothing could be scheduled although nothing was running; this request was first in line.';
  }

  /** Gives each request of a call its blocks and packs its rows. */
  #prepare(chunks: readonly ScheduledChunk<LlmRequest>[]): void {
    this.#batch.clear();
    const nowMs = this.#world.clock();
    for (const { request, contextTokens } of chunks) {
      const isFirstChunk = request.phase === 'context' && request.contextPosition === 0;
      request.chunkLength = contextTokens;
      if (!this.#planner.allocate(request)) {
        request.error =
          'The KV cache had no block left for a request that it had room for when it was scheduled.';
        continue;
      }
      if (contextTokens > 0) this.#counts.contextRequests++;
      else this.#counts.generationRequests++;
      this.#counts.contextTokens += request.chunkLength;
      if (isFirstChunk && request.shared !== null) this.#countReuse(request);
      request.timing.noteScheduled(nowMs);
      this.#batch.add(request);
    }
    if (this.#batch.numSequences > 0) {
      this.#counts.emptyGenerationSlots += this.#scheme.pad(this.#batch, chunks);
    }
    this.#batch.finish();
  }

  #countReuse({ promptLength, contextPosition }: LlmRequest): void {
    if (!this.#world.kvCache.enableBlockReuse) return;
    this.#counts.queriedTokens += promptLength;
    this.#counts.reusedTokens += contextPosition;
  }

  /** Runs the batch. False if there was none, or if it failed and took its requests with it. */
  #step(chunks: readonly ScheduledChunk<LlmRequest>[]): boolean {
    if (this.#batch.numSequences === 0) return false;
    const startMs = this.#world.clock();
    try {
      const copies = this.#world.kvCache.drainCopies();
      if (copies) this.#world.executor.copyBlocks(copies.source, copies.target);
      this.#world.executor.step(this.#batch, this.#batch.sampling, this.#output);
      return true;
    } catch (error) {
      this.#failBatch(chunks, messageOf(error));
      return false;
    } finally {
      this.#counts.executorMs += this.#world.clock() - startMs;
    }
  }

  #failBatch(chunks: readonly ScheduledChunk<LlmRequest>[], reason: string): void {
    const iteration = this.#statistics.iteration + 1;
    for (const { request } of chunks) {
      if (request.error === '') request.error = `The executor failed in iteration ${iteration}: ${reason}`;
    }
  }

  /** Appends what was drawn and evaluates the stop conditions. */
  #update(chunks: readonly ScheduledChunk<LlmRequest>[]): void {
    let row = 0;
    const nowMs = this.#world.clock();
    for (const { request } of chunks) {
      if (request.error !== '') continue;
      const { drawsToken } = request;
      const wasContext = request.phase === 'context';
      if (wasContext) request.finishChunk();
      if (!drawsToken) continue;
      if (this.#output.status[row] === ROW_OK) {
        request.numVerified = request.numTokens;
        if (wasContext) this.#planner.keep(request);
        const known = request.numGenerated;
        request.append(this.#output, row);
        if (request.numGenerated > known) request.timing.noteToken(nowMs);
        this.#counts.generatedTokens++;
      } else {
        request.error = `The logits for token ${request.numTokens} of this request are not finite (NaN or all -infinity).`;
      }
      row++;
    }
  }

  #pollStopSignals(): void {
    for (const requestId of this.#world.callbacks.pollStopSignals()) {
      const request = this.#active.get(requestId);
      if (request && this.#isUnanswered(request)) request.finishReason = FINISH_CANCELLED;
    }
  }

  #endOverdue(): void {
    const nowMs = this.#world.clock();
    for (const request of this.#active.ordered) {
      if (nowMs >= request.deadlineMs && this.#isUnanswered(request)) request.finishReason = FINISH_TIMED_OUT;
    }
  }

  /** It goes on, or waits for its batch: there is something that a stop can cut short. */
  #isUnanswered(request: LlmRequest): boolean {
    return !request.isComplete || this.#scheme.holds(request);
  }

  /** Frees what has ended before its final response is written; then streams what is new. */
  #respond(): void {
    const isHeld = (request: LlmRequest) => this.#scheme.holds(request);
    this.#active.removeComplete(isHeld, (request) => {
      if (request.error === '') this.#planner.keep(request);
      this.#planner.release(request);
      this.#world.rope.release(request.ropeRow);
      this.#counts.completedRequests++;
      this.#counts.replayMismatches += request.replayMismatches;
      this.#responses.add(request, true);
    });
    for (const request of this.#active.ordered) {
      if (request.timing.numIterations === 0) this.#counts.queuedRequests++;
      if (request.spec.streaming && request.numGenerated > request.numSent) {
        this.#responses.add(request, false);
      }
    }
    if (this.#options.checkIntegrity) this.#world.kvCache.checkIntegrity();
  }

  /** Hands over responses and statistics; false if there were neither. */
  #report(blocks: KvCacheStats, startMs: number): boolean {
    const { callbacks, kvCache } = this.#world;
    const wasActive = this.#counts.activeRequests > 0;
    if (!wasActive && this.#responses.count === 0) return false;
    const iterationMs = this.#world.clock() - startMs;
    const { usedBlocks } = kvCache.stats();
    const stats = wasActive
      ? this.#statistics.finishIteration(this.#counts, blocks, usedBlocks, iterationMs)
      : null;
    const json = stats !== null && callbacks.wantsStatsJson ? this.#statsJson(stats, blocks) : null;
    const kvEvents = kvCache.drainEvents();
    const report = { responses: this.#responses, stats, json, freePlaces: this.freePlaces };
    callbacks.endIteration(kvEvents.length > 0 ? { ...report, kvEvents } : report);
    this.#responses.clear();
    return true;
  }

  #statsJson(stats: IterationStats, blocks: KvCacheStats): string {
    const now = new Date();
    return this.#options.statsFormat === 'IterationStats'
      ? iterationStatsJson(this.#modelType, stats, blocks, now)
      : batchManagerStatsJson(this.#modelType, stats, this.#world.executor.memory(), now);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
