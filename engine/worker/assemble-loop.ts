import {
  DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS,
  DEFAULT_MAX_RETURNED_LOGITS_BYTES,
} from '../../callbacks/options/optional-params.js';
import { ContextPace } from '../../scheduler/tokens/context-pace.js';
import { PostProcessors } from '../decoding/post-processors.js';
import type { Executor } from '../executors/executor.js';
import { GenerationLoop } from '../generation-loop.js';
import { ResponseWriter } from '../intake/response-writer.js';
import { IterationPlanner } from '../iteration-planner.js';
import { BlockTransfer } from '../loop/block-transfer.js';
import { type CallRunner, OverlappedCalls, SerialCalls } from '../loop/call-runner.js';
import { DiskCache } from '../loop/disk-cache.js';
import { DraftStage } from '../loop/draft-stage.js';
import { FlightRecorder } from '../loop/flight-recorder.js';
import { GuidedDecoding } from '../loop/guided-decoding.js';
import { RunningSteps } from '../loop/iteration.js';
import { IterationReporter } from '../loop/iteration-reporter.js';
import { LogitsStage } from '../loop/logits-stage.js';
import type { LoopEnvironment, LoopOptions } from '../loop/loop-options.js';
import { MicroBatchSplit } from '../loop/micro-batch-split.js';
import { type CallParts, PackedCall } from '../loop/packed-call.js';
import { RequestExit } from '../loop/request-exit.js';
import { RequestIntake } from '../loop/request-intake.js';
import { RequestStops } from '../loop/request-stops.js';
import { TokenUpdate } from '../loop/token-update.js';
import { ActiveRequests } from '../request/active-requests.js';
import type { LlmRequest } from '../request/llm-request.js';
import { mayRepeat } from '../request/repeated-steps.js';
import { ReturnedLogitsBudget } from '../request/returned-logits.js';
import type { BatchingScheme } from '../schemes/batching-scheme.js';
import { createScheme } from '../schemes/index.js';
import { paddingRoom } from '../schemes/padding-room.js';

/** Makes the parts of a generation loop and connects them: each is finished before the next one gets it. */
export function assembleLoop(options: LoopOptions, world: LoopEnvironment): GenerationLoop {
  const { modelType = 'InflightFusedBatching', statsFormat = 'BatchManager', maxNumSequences } = options;
  const { executor, kvCache, rope, clock, callbacks, guideThread = null } = world;
  const sizes = sizesOf(options, world);
  const limits = admissionLimits(options, world);
  const scheme = createScheme(modelType, options.schedulerPolicy, options.maxSeqLen);
  const pace = paceOf(options, kvCache.tokensPerBlock);
  const runningSteps = new RunningSteps();
  const planner = newPlanner({ options, world, limits, scheme, pace, runningSteps });
  const guided = new GuidedDecoding(guideThread, {
    vocabSize: executor.vocabSize,
    canDraft: sizes.maxDraftRows > 0,
    isLockstep: modelType === 'V1',
    mayRepeat: (request) => mayRepeat(request, kvCache),
  });
  const recorder = new FlightRecorder();
  const split = newSplit(options, executor, runningSteps);
  const adapters = world.adapters?.cache ?? null;
  const keptWidth = world.drafts?.keptWidth ?? 0;
  const callParts = { planner, scheme, kvCache, adapters, guided, recorder, clock, keptWidth };
  const calls = newCalls({ options, world, sizes, callParts, split, runningSteps });
  const { maxNumTokens } = options.microBatch;
  const { maxDraftRows } = sizes;
  const takesBlocks = split === null;
  const drafts = world.drafts
    ? new DraftStage({ policy: world.drafts, guided }, kvCache, { maxNumTokens, maxDraftRows, takesBlocks })
    : null;
  const active = new ActiveRequests<LlmRequest>(options.maxWaitIterations);
  const { maxReturnedLogitsBytes = DEFAULT_MAX_RETURNED_LOGITS_BYTES } = options;
  const logitsBudget = new ReturnedLogitsBudget(maxReturnedLogitsBytes, executor.vocabSize);
  const responses = new ResponseWriter();
  const transfer = new BlockTransfer(executor, kvCache, runningSteps);
  const format = { modelType, statsFormat };
  return new GenerationLoop({
    clock,
    kvCache,
    adapters,
    checksIntegrity: options.checkIntegrity ?? false,
    active,
    scheme,
    planner,
    intake: new RequestIntake({ options, limits, world, active, logitsBudget, responses, guided }),
    guided,
    drafts,
    split,
    calls,
    update: new TokenUpdate(planner, drafts, recorder, clock),
    stops: new RequestStops(active, scheme, callbacks, planner),
    exit: new RequestExit({
      active,
      scheme,
      planner,
      rope,
      logitsBudget,
      guided,
      drafts,
      adapters,
      responses,
    }),
    transfer,
    disk: newDisk(world, transfer, planner),
    recorder,
    reporter: new IterationReporter(world, responses, format, maxNumSequences, recorder),
    pace,
  });
}

/** Most rows that a call has room for. */
interface CallSizes {
  maxNumTokens: number;
  maxNumSequences: number;
  maxPaddingSequences: number;
  /** Rows of logits that the executor has for drafts, besides one for each sequence. */
  maxDraftRows: number;
}

function sizesOf(options: LoopOptions, { executor, kvCache, drafts }: LoopEnvironment): CallSizes {
  const { modelType = 'InflightFusedBatching' } = options;
  const { maxNumTokens } = options.microBatch;
  const maxSequences = maxSequencesOf(options);
  const { tokensPerBlock } = kvCache;
  const padding = paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock });
  const spareRows = Math.max(0, executor.options.maxLogitRows - maxSequences);
  return {
    maxNumTokens,
    maxNumSequences: maxSequences,
    maxPaddingSequences: padding.sequences,
    maxDraftRows: drafts === undefined ? 0 : spareRows,
  };
}

function maxSequencesOf({ microBatch: { maxBatchSize, maxSequences = maxBatchSize } }: LoopOptions): number {
  return maxSequences;
}

function admissionLimits(options: LoopOptions, { kvCache }: LoopEnvironment) {
  return {
    maxInputLen: options.maxInputLen,
    maxSeqLen: options.maxSeqLen,
    microBatch: { ...options.microBatch, maxSequences: maxSequencesOf(options) },
    numBlocks: kvCache.numBlocks,
    tokensPerBlock: kvCache.tokensPerBlock,
    maxAttentionWindow: kvCache.cachedTokensPerSequence,
    ...(kvCache.states !== null && { numStateSlots: kvCache.states.numSlots }),
  };
}

interface PlannerParts {
  options: LoopOptions;
  world: LoopEnvironment;
  limits: ReturnType<typeof admissionLimits>;
  scheme: BatchingScheme;
  pace: ContextPace | null;
  runningSteps: RunningSteps;
}

function newPlanner({ options, world, limits, scheme, pace, runningSteps }: PlannerParts): IterationPlanner {
  const { executor, kvCache } = world;
  const { maxNumSequences, startHorizon } = options;
  const { capacityPolicy: policy, scheduleMicroBatch } = scheme;
  // While a step runs the executor refuses other calls.
  const areFinite = (blocks: Int32Array, states: Int32Array) =>
    runningSteps.count === 0 &&
    executor.areFinite(blocks) &&
    (states.length === 0 || executor.areStatesFinite!(states));
  const adapters = world.adapters?.cache.room;
  const planning = { policy, scheduleMicroBatch, maxNumSequences, startHorizon, adapters, areFinite, pace };
  return new IterationPlanner({ ...limits, ...planning }, kvCache);
}

function newDisk(
  { disk, kvCache, clock, callbacks }: LoopEnvironment,
  transfer: BlockTransfer,
  planner: IterationPlanner,
): DiskCache | null {
  if (disk === undefined) return null;
  return new DiskCache({
    ...disk,
    kvCache,
    transfer,
    sharedOf: (request) => planner.sharedOf(request),
    clock,
    reportError: (error) => callbacks.reportError(error),
  });
}

/** null if no bound was asked for, or contexts run whole. */
function paceOf(options: LoopOptions, unit: number): ContextPace | null {
  const { maxInterTokenLatencyMs, chunkMs, microBatch } = options;
  const isBounded = maxInterTokenLatencyMs !== undefined || chunkMs !== undefined;
  return isBounded && microBatch.chunking ? new ContextPace({ maxInterTokenLatencyMs, chunkMs }, unit) : null;
}

/**
 * null: each iteration waits for its step. Stages stand still where nothing else runs, so they get few requests too, as few as the
 * executor says; overlap hides the loop's own work only, for which forwards of few requests are no good price.
 */
function newSplit(
  { modelType, enableTrtOverlap = false, minMicroBatchSize }: LoopOptions,
  { maxBegun = 1, minBegun = 1 }: Executor,
  runningSteps: RunningSteps,
): MicroBatchSplit | null {
  if (modelType === 'V1') return null;
  if (maxBegun > 1) return new MicroBatchSplit(minMicroBatchSize ?? minBegun, maxBegun, runningSteps);
  return enableTrtOverlap ? new MicroBatchSplit(minMicroBatchSize, 2, runningSteps) : null;
}

interface RunnerInputs {
  options: LoopOptions;
  world: LoopEnvironment;
  sizes: CallSizes;
  callParts: CallParts;
  split: MicroBatchSplit | null;
  runningSteps: RunningSteps;
}

function newCalls({ options, world, sizes, callParts, split, runningSteps }: RunnerInputs): CallRunner {
  const { executor, kvCache, rope, postProcessors, clock } = world;
  const { logitsPostProcessorTimeoutMs = DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS } = options;
  const processors = postProcessors ?? new PostProcessors(new Map());
  const logitsStage = new LogitsStage(processors, logitsPostProcessorTimeoutMs, clock);
  const newCall = () => new PackedCall(sizes, rope, callParts);
  const parts = { executor, logitsStage, kvCache, adapters: callParts.adapters, clock };
  return split
    ? new OverlappedCalls(parts, Array.from({ length: split.parts }, newCall), split, runningSteps)
    : new SerialCalls(parts, newCall());
}
