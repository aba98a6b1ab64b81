import type { EngineFormation } from '../callbacks/formation.js';
import { ContextPace } from '../scheduler/context-pace.js';
import { BatchFormer } from './batch/batch-former.js';
import { PostProcessors } from './decoding/post-processors.js';
import { SamplingResults } from './decoding/sampling-results.js';
import { ResponseWriter } from './intake/response-writer.js';
import { IterationPlanner } from './iteration-planner.js';
import { type CallRunner, OverlappedCalls, SerialCalls } from './loop/call-runner.js';
import { DraftStage } from './loop/draft-stage.js';
import { FlightRecorder } from './loop/flight-recorder.js';
import { formationOf } from './loop/formation.js';
import { GuidedDecoding } from './loop/guided-decoding.js';
import { type Chunks, type Iteration, newIteration } from './loop/iteration.js';
import { IterationReporter } from './loop/iteration-reporter.js';
import { LogitsStage } from './loop/logits-stage.js';
import type { LoopEnvironment, LoopOptions } from './loop/loop-options.js';
import { MicroBatchSplit } from './loop/micro-batch-split.js';
import { PackedCall } from './loop/packed-call.js';
import { RequestExit } from './loop/request-exit.js';
import { RequestIntake } from './loop/request-intake.js';
import { RequestStops } from './loop/request-stops.js';
import { TokenUpdate } from './loop/token-update.js';
import {
  DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS,
  DEFAULT_MAX_RETURNED_LOGITS_BYTES,
} from './options/engine-limits.js';
import { ActiveRequests } from './request/active-requests.js';
import type { LlmRequest } from './request/llm-request.js';
import { ReturnedLogitsBudget } from './request/returned-logits.js';
import type { BatchingScheme } from './schemes/batching-scheme.js';
import { createScheme } from './schemes/index.js';
import { paddingRoom } from './schemes/padding-room.js';

/** The token generation loop: one call of `iterate` is one iteration. It knows nothing of threads. */
export class GenerationLoop {
  readonly #world: LoopEnvironment;
  readonly #checksIntegrity: boolean;
  readonly #active: ActiveRequests<LlmRequest>;
  readonly #scheme: BatchingScheme;
  readonly #planner: IterationPlanner;
  readonly #intake: RequestIntake;
  readonly #drafts: DraftStage | null;
  readonly #calls: CallRunner;
  readonly #split: MicroBatchSplit | null;
  readonly #update: TokenUpdate;
  readonly #stops: RequestStops;
  readonly #exit: RequestExit;
  readonly #guided: GuidedDecoding;
  readonly #recorder = new FlightRecorder();
  readonly #reporter: IterationReporter;
  readonly #pace: ContextPace | null;
  /** What has not started, because nothing could beside what was running. */
  #unstarted: Iteration | null = null;

  constructor(options: LoopOptions, world: LoopEnvironment) {
    const { modelType = 'InflightFusedBatching', statsFormat = 'BatchManager', maxNumSequences } = options;
    const { kvCache, rope, clock, callbacks } = world;
    const { tokensPerBlock } = kvCache;
    const { maxNumTokens, maxBatchSize, maxSequences = maxBatchSize } = options.microBatch;
    const limits = {
      maxInputLen: options.maxInputLen,
      maxSeqLen: options.maxSeqLen,
      microBatch: { ...options.microBatch, maxSequences },
      numBlocks: kvCache.numBlocks,
      tokensPerBlock,
      maxAttentionWindow: kvCache.cachedTokensPerSequence,
    };
    const scheme = createScheme(modelType, options.schedulerPolicy, options.maxSeqLen);
    const { capacityPolicy: policy, scheduleMicroBatch } = scheme;
    const { startHorizon } = options;
    // While a call runs the executor answers nothing else.
    const areFinite = (blocks: Int32Array) =>
      this.#calls.running === null && world.executor.areFinite(blocks);
    const pace = paceOf(options, tokensPerBlock);
    const planning = {
      ...limits,
      policy,
      scheduleMicroBatch,
      maxNumSequences,
      startHorizon,
      areFinite,
      pace,
    };
    const planner = new IterationPlanner(planning, kvCache);
    this.#pace = pace;
    const padding = paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock });
    const maxDraftRows =
      world.drafts === undefined ? 0 : Math.max(0, world.executor.options.maxLogitRows - maxSequences);
    const room = {
      maxNumTokens,
      maxNumSequences: maxSequences,
      maxDraftRows,
      maxPaddingSequences: padding.sequences,
    };
    const guided = new GuidedDecoding(world.guideThread ?? null, {
      vocabSize: world.executor.vocabSize,
      canDraft: maxDraftRows > 0,
      isLockstep: modelType === 'V1',
    });
    this.#guided = guided;
    const newCall = () =>
      new PackedCall(new BatchFormer(room, kvCache, rope), new SamplingResults(maxSequences + maxDraftRows), {
        planner,
        scheme,
        kvCache,
        guided,
        recorder: this.#recorder,
        clock,
      });
    const responses = new ResponseWriter();
    this.#active = new ActiveRequests(options.maxWaitIterations);
    const logitsBudget = new ReturnedLogitsBudget(
      options.maxReturnedLogitsBytes ?? DEFAULT_MAX_RETURNED_LOGITS_BYTES,
      world.executor.vocabSize,
    );
    this.#world = world;
    this.#checksIntegrity = options.checkIntegrity ?? false;
    this.#scheme = scheme;
    this.#planner = planner;
    this.#intake = new RequestIntake(options, limits, world, this.#active, logitsBudget, responses, guided);
    const takesBlocks = !options.enableTrtOverlap;
    this.#drafts = world.drafts
      ? new DraftStage({ policy: world.drafts, guided }, kvCache, { maxNumTokens, maxDraftRows, takesBlocks })
      : null;
    this.#split = options.enableTrtOverlap ? new MicroBatchSplit(options.minMicroBatchSize) : null;
    const parts = { ...world, logitsStage: newLogitsStage(options, world) };
    this.#calls = this.#split
      ? new OverlappedCalls(parts, [newCall(), newCall()], this.#split)
      : new SerialCalls(parts, newCall());
    this.#update = new TokenUpdate(planner, this.#drafts, this.#recorder, clock);
    this.#stops = new RequestStops(this.#active, scheme, callbacks, planner);
    const { drafts = null } = world;
    const exitParts = { planner, scheme, rope, logitsBudget, guided, drafts };
    this.#exit = new RequestExit(exitParts, this.#active, responses);
    const format = { modelType, statsFormat };
    this.#reporter = new IterationReporter(world, responses, format, maxNumSequences, this.#recorder);
  }

  /** Requests that could be taken now. */
  get freePlaces(): number {
    return this.#intake.freePlaces;
  }

  get activeRequests(): number {
    return this.#active.size;
  }

  get isDraining(): boolean {
    return this.#intake.isDraining;
  }

  /** From now on new requests are refused; what is active goes on. */
  drain(): void {
    this.#intake.drain();
  }

  /** What is in flight now, for who watches. */
  formation(): EngineFormation {
    const record = this.#recorder.take(this.#world.clock());
    return formationOf(this.#active.ordered, this.#world.kvCache, this.#reporter.iteration, record);
  }

  /** Forgets what the KV cache keeps for others, between two iterations; see KvCacheManager.dropReusable. */
  resetCache(): number {
    const dropped = this.#world.kvCache.dropReusable();
    if (this.#checksIntegrity) this.#world.kvCache.checkIntegrity();
    this.#reporter.reportEvents(this.freePlaces);
    return dropped;
  }

  /**
   * One iteration. False if nothing was active and there was nothing to send.
   *
   * With overlap it starts a micro-batch when the one before has ended, and then updates and answers that one:
   *
   *   iterate    receive  schedule 1  pack 1  | end of 0, start of 1 |  update 0  stops  respond  report 0
   *   executor   --------- step 0 ------------|                      |--------- step 1 -------------------
   */
  iterate(): boolean {
    const { clock, kvCache } = this.#world;
    const before = this.#calls.running;
    const iteration = this.#nextIteration(before);
    kvCache.advanceClock(clock());
    this.#intake.receive(iteration.counts);
    const chunks = this.#schedule(iteration);
    this.#drafts?.propose(chunks);
    const calls = this.#scheme.calls(chunks);
    for (const call of calls) this.#update.apply(this.#calls.start(call, iteration));
    if (calls.length === 0) this.#update.apply(this.#calls.finish());
    const ended = this.#endedIteration(before, iteration);
    const blocks = kvCache.stats();
    this.#stops.pollSignals();
    this.#stops.endOverdue(clock());
    this.#exit.respond((ended ?? iteration).counts);
    if (this.#checksIntegrity) {
      kvCache.checkIntegrity();
      this.#world.drafts?.checkIntegrity();
    }
    const hasReported = this.#reporter.report(ended, blocks, this.freePlaces);
    if (ended !== null && ended.counts.executorMs > 0) {
      this.#pace?.note(ended.counts, this.#reporter.iterationMs);
      this.#drafts?.noteStep(ended.counts);
    }
    return hasReported || this.#calls.running !== null;
  }

  /** The iteration that this call of `iterate` is to start, beside the one that runs. */
  #nextIteration(running: Iteration | null): Iteration {
    const number = this.#reporter.iteration + (running === null ? 1 : 2);
    const iteration = this.#unstarted ?? newIteration(number, this.#world.clock());
    iteration.microBatchId = running?.microBatchId === 0 ? 1 : 0;
    return iteration;
  }

  /** Without overlap the iteration itself; with it the one before, or null at the beginning. */
  #endedIteration(before: Iteration | null, iteration: Iteration): Iteration | null {
    const { running } = this.#calls;
    const ended = running === null ? (before ?? iteration) : before;
    this.#unstarted = ended === iteration || running === iteration ? null : iteration;
    return ended;
  }

  /** Who runs how many tokens now; who has to pause gives its blocks back first. */
  #schedule({ number, counts }: Iteration): Chunks {
    counts.activeRequests = this.#active.size;
    if (this.#active.size === 0) return [];
    this.#active.promoteAged();
    const running = this.#guided.ready(this.#active.running);
    const { chunks, paused } = this.#planner.plan(running, this.#split);
    for (const request of paused) {
      this.#world.drafts?.release(request);
      this.#recorder.notePause(request.requestId, number, this.#world.clock());
    }
    counts.pausedRequests += paused.length;
    const isIdle = chunks.length === 0 && paused.length === 0 && this.#calls.running === null;
    // Who waits for its masks may hold what the others need.
    const waitsForGuides = running.length === 0 || running.some((request) => request.isHeld);
    if (isIdle && waitsForGuides) this.#guided.waitAWhile();
    else if (isIdle) this.#failStuckRequest(running[0]!);
    return chunks;
  }

  /** Cannot happen as long as admission and schedulers agree; if they do not, one request fails instead of all hanging. */
  #failStuckRequest(head: LlmRequest): void {
    head.error = 'Nothing could be scheduled although nothing was running; this request was first in line.';
  }
}

function newLogitsStage(options: LoopOptions, { postProcessors, clock }: LoopEnvironment): LogitsStage {
  const timeLimitMs = options.logitsPostProcessorTimeoutMs ?? DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS;
  return new LogitsStage(postProcessors ?? new PostProcessors(new Map()), timeLimitMs, clock);
}

/** null where no bound was asked for, or contexts run whole. */
function paceOf(options: LoopOptions, unit: number): ContextPace | null {
  const { maxInterTokenLatencyMs, maxChunkMs, microBatch } = options;
  const isBounded = maxInterTokenLatencyMs !== undefined || maxChunkMs !== undefined;
  return isBounded && microBatch.chunking
    ? new ContextPace({ maxInterTokenLatencyMs, maxChunkMs }, unit)
    : null;
}
