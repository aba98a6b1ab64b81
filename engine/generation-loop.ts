import { ResponseWriter } from '../callbacks/response-writer.js';
import { ActiveRequests } from './active-requests.js';
import { BatchFormer } from './batch-former.js';
import { createSamplingOutput } from './decoding/sampling-rows.js';
import { DEFAULT_MAX_RETURNED_LOGITS_BYTES } from './engine-limits.js';
import { IterationPlanner } from './iteration-planner.js';
import type { LlmRequest } from './llm-request.js';
import { CallRunner } from './loop/call-runner.js';
import { type Chunks, newIteration } from './loop/iteration.js';
import { IterationReporter } from './loop/iteration-reporter.js';
import type { LoopEnvironment, LoopOptions } from './loop/loop-options.js';
import { PackedCall } from './loop/packed-call.js';
import { RequestExit } from './loop/request-exit.js';
import { RequestIntake } from './loop/request-intake.js';
import { RequestStops } from './loop/request-stops.js';
import { TokenUpdate } from './loop/token-update.js';
import type { IterationCounts } from './loop-statistics.js';
import { ReturnedLogitsBudget } from './returned-logits.js';
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
  readonly #calls: CallRunner;
  readonly #update: TokenUpdate;
  readonly #stops: RequestStops;
  readonly #exit: RequestExit;
  readonly #reporter: IterationReporter;

  constructor(options: LoopOptions, world: LoopEnvironment) {
    const { modelType = 'InflightFusedBatching', statsFormat = 'BatchManager', maxNumSequences } = options;
    const { kvCache, rope, clock, callbacks } = world;
    const { tokensPerBlock } = kvCache;
    const { maxNumTokens, maxBatchSize } = options.microBatch;
    const limits = {
      maxInputLen: options.maxInputLen,
      maxSeqLen: options.maxSeqLen,
      microBatch: options.microBatch,
      numBlocks: kvCache.numBlocks,
      tokensPerBlock,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
    };
    const scheme = createScheme(modelType, options.schedulerPolicy, options.maxSeqLen);
    const { capacityPolicy: policy, scheduleMicroBatch } = scheme;
    const { startHorizon } = options;
    const planning = { ...limits, policy, scheduleMicroBatch, maxNumSequences, startHorizon };
    const planner = new IterationPlanner(planning, kvCache);
    const padding = paddingRoom(modelType, { maxBatchSize, maxNumTokens, tokensPerBlock });
    const room = { maxNumTokens, maxNumSequences: maxBatchSize, maxPaddingSequences: padding.sequences };
    const call = new PackedCall(
      new BatchFormer(room, kvCache, rope),
      createSamplingOutput(maxBatchSize, options.maxTopLogProbs),
      { planner, scheme, kvCache, clock },
    );
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
    this.#intake = new RequestIntake(options, limits, world, this.#active, logitsBudget, responses);
    this.#calls = new CallRunner(world, call);
    this.#update = new TokenUpdate(planner, clock);
    this.#stops = new RequestStops(this.#active, scheme, callbacks);
    this.#exit = new RequestExit({ planner, scheme, rope, logitsBudget }, this.#active, responses);
    this.#reporter = new IterationReporter(world, responses, { modelType, statsFormat }, maxNumSequences);
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

  /** One iteration. False if nothing was active and there was nothing to send. */
  iterate(): boolean {
    const { clock, kvCache } = this.#world;
    const iteration = newIteration(this.#reporter.iteration + 1, clock());
    kvCache.advanceClock(iteration.startMs);
    this.#intake.receive(iteration.counts);
    const chunks = this.#schedule(iteration.counts);
    for (const call of this.#scheme.calls(chunks)) {
      this.#update.apply(this.#calls.run(call, iteration));
    }
    const blocks = kvCache.stats();
    this.#stops.pollSignals();
    this.#stops.endOverdue(clock());
    this.#exit.respond(iteration.counts);
    if (this.#checksIntegrity) kvCache.checkIntegrity();
    return this.#reporter.report(iteration, blocks, this.freePlaces);
  }

  /** Who runs how many tokens now; who has to pause gives its blocks back first. */
  #schedule(counts: IterationCounts): Chunks {
    counts.activeRequests = this.#active.size;
    if (this.#active.size === 0) return [];
    this.#active.promoteAged();
    const { chunks, paused } = this.#planner.plan(this.#active.running);
    counts.pausedRequests = paused.length;
    if (chunks.length === 0 && paused.length === 0) this.#failStuckRequest();
    return chunks;
  }

  /** Cannot happen as long as admission and schedulers agree; if they do not, one request fails instead of all hanging. */
  #failStuckRequest(): void {
    const head = this.#active.ordered[0]!;
    head.error = 'Nothing could be scheduled although nothing was running; this request was first in line.';
  }
}
