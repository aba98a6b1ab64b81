import { worded } from '../../base/named-text.js';
import type { ModelType } from '../../callbacks/gpt-manager-options.js';
import { RESPONSE_BEAM, RESPONSE_FINAL, RESPONSE_STREAMING } from '../../callbacks/response-batch.js';
import { RopeTable } from '../../engine/batch/rope-table.js';
import type { PostProcessors } from '../../engine/decoding/post-processors.js';
import type { Executor } from '../../engine/executors/executor.js';
import type { GenerationLoop } from '../../engine/generation-loop.js';
import type { GuideThread } from '../../engine/guided/guide-messages.js';
import type { IterationReport, LoopCallbacks } from '../../engine/intake/loop-callbacks.js';
import { paddingRoom } from '../../engine/schemes/padding-room.js';
import type { DraftPolicy } from '../../engine/speculation/draft-policy.js';
import { assembleLoop } from '../../engine/worker/assemble-loop.js';
import { chunkMsOn } from '../../engine/worker/create-loop.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import type { ModelConfig } from '../../models/model-config.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import type { ChunkingPolicy, SchedulerPolicy } from '../../scheduler/tokens/types.js';
import type { Arrival } from './scenario.js';

export interface RunOptions {
  /** Default InflightFusedBatching. */
  modelType?: ModelType;
  schedulerPolicy: SchedulerPolicy;
  /** Blocks of the pool; at most the executor's. V1 needs some more for padding. */
  numBlocks: number;
  /** Tokens of one iteration; with `chunked`, prompts may be cut to fit. */
  maxNumTokens: number;
  chunked: boolean;
  /** Default false. */
  reuse?: boolean;
  /** With reuse: blocks to swap out to; default 0. */
  numSecondaryBlocks?: number;
  /** Two micro-batches of at least two requests take turns. Default false. */
  overlap?: boolean;
  /** Default 1. */
  maxBeamWidth?: number;
  /** Post-processors that requests can name; default: none. */
  postProcessors?: PostProcessors;
  /** Source of drafts, and how many of the executor's rows of logits are for them; default: no drafts. */
  drafts?: { policy: DraftPolicy; rows: number };
  /** Thread that follows guides; default: none. */
  guideThread?: GuideThread;
  /** Cuts prompts by what iterations take on this machine; with `chunked`. Default: no bound. */
  maxInterTokenLatencyMs?: number;
  maxChunkMs?: number;
  /** With chunks; default FIRST_COME_FIRST_SERVED. */
  chunkingPolicy?: ChunkingPolicy;
  /** Called before the first iteration, and after the last one. */
  before?: (loop: GenerationLoop) => void;
  after?: (loop: GenerationLoop) => void;
  /** Iterations after which each time nothing of the cache can be found any more. Default: never. */
  resetsEvery?: number;
}

/** The options that every run has. */
export const runOptions = (
  schedulerPolicy: SchedulerPolicy,
  numBlocks: number,
  maxNumTokens: number,
  chunked: boolean,
): RunOptions => ({ schedulerPolicy, numBlocks, maxNumTokens, chunked });

/** Answer to one request: generated tokens, the log-prob of each, and their sum. */
export interface Answer {
  tokens: number[];
  logProbs: number[];
  error: string;
  /** Logits and log-probs of the prompt, and logits of each generated token, where the request asked for them. */
  contextLogits: Float32Array | null;
  contextLogProbs: Float32Array | null;
  generationLogits: number[];
  /** Sum of the log-probs as it was reported. */
  cumLogProb: number;
  /** The most probable tokens with their log-probs, for each generated token and for each of the prompt. */
  topTokens: number[];
  topLogProbs: number[];
  contextTopTokens: Int32Array | null;
}

/** Key of the answer of one sequence, or beam, of a request that has several. */
export function sequenceKey(requestId: bigint, index: number): bigint {
  return requestId + (BigInt(index + 1) << 32n);
}

/** A new answer without anything in it. */
export function noAnswer(): Answer {
  return {
    tokens: [],
    logProbs: [],
    error: '',
    contextLogits: null,
    contextLogProbs: null,
    generationLogits: [],
    cumLogProb: 0,
    topTokens: [],
    topLogProbs: [],
    contextTopTokens: null,
  };
}

export interface RunResult {
  answers: Map<bigint, Answer>;
  /** Why each answer ended, by the same keys; 0: it has not. */
  finishReasons: Map<bigint, number>;
  pauses: number;
  replayMismatches: number;
  /** Prompt tokens that were in the cache. */
  reusedTokens: number;
  /** Blocks brought back from the secondary pool. */
  swappedInBlocks: number;
  /** Most requests that ran in one iteration. */
  greatestBatch: number;
  emptyGenerationSlots: number;
  /** Iterations that ran as the second of two micro-batches. */
  overlapped: number;
}

/** Runs arrivals through a GenerationLoop in this thread, checking the KV cache after each iteration. */
export function runLoop(
  executor: Executor,
  config: ModelConfig,
  arrivals: readonly Arrival[],
  options: RunOptions,
): RunResult {
  const { tokensPerBlock, maxSeqLen, maxLogitRows } = executor.options;
  const { maxBeamWidth = 1 } = options;
  const maxBatchSize = Math.floor((maxLogitRows - (options.drafts?.rows ?? 0)) / maxBeamWidth);
  const maxSequences = maxBatchSize * maxBeamWidth;
  const { modelType = 'InflightFusedBatching', maxNumTokens } = options;
  const padding = paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock });
  if (options.numBlocks + padding.blocks > executor.options.numBlocks) throw new Error('no room for padding');
  if ((options.numSecondaryBlocks ?? 0) > (executor.options.numSecondaryBlocks ?? 0))
    throw new Error('no room to swap out');
  const recorder = new Recorder(arrivals);
  const perLength = ropeDependsOnLength(config.rope) ? (n: number) => ropeFrequencies(config.rope, n) : null;
  const kvCache = new KvCacheManager({
    numBlocks: options.numBlocks,
    tokensPerBlock,
    maxSeqLen,
    ...statesOf(executor),
    enableBlockReuse: options.reuse ?? false,
    numSecondaryBlocks: options.numSecondaryBlocks ?? 0,
    ...resolveWindow(executor.options)?.options,
  });
  const loop = assembleLoop(
    {
      modelType,
      schedulerPolicy: options.schedulerPolicy,
      microBatch: {
        maxBatchSize,
        maxSequences,
        maxNumTokens,
        ...(options.chunked
          ? {
              chunking: {
                policy: options.chunkingPolicy ?? ('FIRST_COME_FIRST_SERVED' as const),
                unit: tokensPerBlock,
              },
            }
          : {}),
      },
      maxNumSequences: maxBatchSize,
      maxInputLen: maxSeqLen,
      maxSeqLen,
      maxBeamWidth,
      maxTopLogProbs: null,
      checkIntegrity: true,
      enableTrtOverlap: options.overlap ?? false,
      minMicroBatchSize: 2,
      maxInterTokenLatencyMs: options.maxInterTokenLatencyMs,
      chunkMs: chunkMsOn('native', options.maxChunkMs),
    },
    {
      executor,
      kvCache,
      rope: new RopeTable(ropeFrequencies(config.rope), perLength, maxBatchSize),
      callbacks: recorder,
      ...(options.postProcessors ? { postProcessors: options.postProcessors } : {}),
      ...(options.drafts ? { drafts: options.drafts.policy } : {}),
      ...(options.guideThread ? { guideThread: options.guideThread } : {}),
      clock: () => performance.now(),
      drawSeed: () => {
        throw new Error('every request of these tests brings its seed');
      },
    },
  );
  options.before?.(loop);
  for (let iteration = 1; !recorder.isDone; iteration++) {
    loop.iterate();
    if (options.resetsEvery !== undefined && iteration % options.resetsEvery === 0) kvCache.dropReusable();
  }
  options.after?.(loop);
  return recorder.result;
}

/** Hands requests over when their iteration comes and puts the answers together. */
class Recorder implements LoopCallbacks {
  readonly wantsStatsJson = false;
  readonly result: RunResult = {
    answers: new Map(),
    finishReasons: new Map(),
    pauses: 0,
    replayMismatches: 0,
    greatestBatch: 0,
    emptyGenerationSlots: 0,
    reusedTokens: 0,
    swappedInBlocks: 0,
    overlapped: 0,
  };
  readonly #waiting: Arrival[];
  #unfinished: number;
  #iteration = 0;

  constructor(arrivals: readonly Arrival[]) {
    this.#waiting = arrivals.toSorted((a, b) => a.iteration - b.iteration);
    this.#unfinished = arrivals.length;
  }

  get isDone(): boolean {
    return this.#unfinished === 0;
  }

  getInferenceRequests(max: number) {
    const due = this.#waiting.findIndex(({ iteration }) => iteration > this.#iteration);
    this.#iteration++;
    const count = Math.min(max, due < 0 ? this.#waiting.length : due);
    return this.#waiting.splice(0, count).map(({ request }) => request);
  }

  pollStopSignals(): Iterable<bigint> {
    return [];
  }

  endIteration({ responses, stats }: IterationReport): void {
    let topStart = 0;
    for (let i = 0; i < responses.count; i++) {
      const answer = this.#answer(responses.requestIds[i]!, responses.sequenceIndexes[i]!);
      answer.cumLogProb = responses.cumLogProbs[i]!;
      this.#noteReason(responses, i);
      // Beams come whole each time.
      if (responses.flags[i]! & RESPONSE_BEAM) {
        answer.tokens.length = 0;
        answer.logProbs.length = 0;
        answer.topTokens.length = 0;
        answer.topLogProbs.length = 0;
      }
      const numLogProbs = responses.logProbStart[i + 1]! - responses.logProbStart[i]!;
      const topEnd = topStart + numLogProbs * responses.topWidths[i]!;
      for (; topStart < topEnd; topStart++) {
        answer.topTokens.push(responses.topTokens[topStart]!);
        answer.topLogProbs.push(responses.topLogProbs[topStart]!);
      }
      const whole = (responses.flags[i]! & RESPONSE_STREAMING) === 0;
      const start = responses.tokenStart[i]! + (whole ? responses.promptLengths[i]! : 0);
      answer.tokens.push(...responses.tokens.subarray(start, responses.tokenStart[i + 1]!));
      answer.logProbs.push(
        ...responses.logProbs.subarray(responses.logProbStart[i]!, responses.logProbStart[i + 1]!),
      );
      const isFirstOfEnd = !(responses.flags[i]! & RESPONSE_BEAM) || responses.sequenceIndexes[i] === 0;
      if (responses.flags[i]! & RESPONSE_FINAL && isFirstOfEnd) this.#unfinished--;
    }
    for (const { index, context, generationLogits } of responses.returned) {
      const answer = this.#answer(responses.requestIds[index]!);
      answer.contextLogits ??= context?.logits ?? null;
      answer.contextLogProbs ??= context?.logProbs?.logProbs ?? null;
      if (context?.logProbs?.numTop) answer.contextTopTokens ??= context.logProbs.topTokens;
      for (const rows of generationLogits ?? [])
        for (const logit of rows) answer.generationLogits.push(logit);
    }
    for (const { index, text } of responses.errors) {
      this.#answer(responses.requestIds[index]!).error = worded(text);
    }
    if (!stats) return;
    this.result.pauses += stats.pausedRequests;
    this.result.emptyGenerationSlots += stats.emptyGenerationSlots;
    this.result.overlapped += stats.microBatchId;
    this.result.reusedTokens += stats.reusedTokens;
    this.result.swappedInBlocks = stats.swappedInBlocks;
    this.result.replayMismatches = stats.totalReplayMismatches;
    this.result.greatestBatch = Math.max(this.result.greatestBatch, stats.scheduledRequests);
  }

  reportError(error: Error): void {
    throw error;
  }

  #noteReason({ requestIds, sequenceIndexes, finishReasons }: IterationReport['responses'], i: number): void {
    const index = sequenceIndexes[i]!;
    const key = index < 0 ? requestIds[i]! : sequenceKey(requestIds[i]!, index);
    this.result.finishReasons.set(key, finishReasons[i]!);
  }

  #answer(id: bigint, sequenceIndex = -1): Answer {
    const requestId = sequenceIndex < 0 ? id : sequenceKey(id, sequenceIndex);
    let answer = this.result.answers.get(requestId);
    if (!answer) {
      answer = noAnswer();
      this.result.answers.set(requestId, answer);
    }
    return answer;
  }
}

/** Each request alone: in an empty engine, its prompt whole, without any request before or next to it. */
export function runAlone(
  executor: Executor,
  config: ModelConfig,
  arrivals: readonly Arrival[],
  environment: Pick<RunOptions, 'postProcessors' | 'maxBeamWidth' | 'guideThread'> = {},
): Map<bigint, Answer> {
  const answers = new Map<bigint, Answer>();
  const { numBlocks, maxNumTokens } = executor.options;
  for (const { request } of arrivals) {
    const options = {
      schedulerPolicy: 'GUARANTEED_NO_EVICT' as const,
      numBlocks,
      maxNumTokens,
      chunked: false,
      ...environment,
    };
    const run = runLoop(executor, config, [{ iteration: 0, request }], options);
    for (const [key, answer] of run.answers) answers.set(key, answer);
  }
  return answers;
}

/** All numbers of an answer, its logits as their bytes: too many for a matcher. */
export function digestOf({ contextLogits, contextLogProbs, generationLogits, ...answer }: Answer) {
  const bytes = (values: ArrayLike<number> | null) =>
    values && Buffer.from(Float32Array.from(values).buffer).toString('base64');
  return {
    ...answer,
    contextLogits: bytes(contextLogits),
    contextLogProbs: bytes(contextLogProbs),
    generationLogits: bytes(generationLogits),
  };
}

/** Half of an executor's slots for states are for snapshots; every second block of a prompt has one. */
function statesOf({ options: { numStateSlots, stateDraftRows, tokensPerBlock } }: Executor) {
  if (numStateSlots === undefined) return {};
  const numSnapshots = numStateSlots >> 1;
  const numSlots = numStateSlots - numSnapshots;
  const interval = 2 * tokensPerBlock;
  return { states: { numSlots, numSnapshots, interval, draftRows: stateDraftRows ?? 0 } };
}
