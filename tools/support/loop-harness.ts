import type { IterationStats, ModelType, StatsFormat } from '../../callbacks/gpt-manager-options.js';
import type { InferenceRequest, NamedTensor, Tensor } from '../../callbacks/types.js';
import { type Response, unpackResponses } from '../../callbacks/unpack-responses.js';
import type { SequenceStop, TurnChanges } from '../../callbacks/worker-messages.js';
import { RopeTable } from '../../engine/batch/rope-table.js';
import type { PostProcessors } from '../../engine/decoding/post-processors.js';
import type { DiskStore } from '../../engine/disk-cache/disk-messages.js';
import { FAKE_MODEL } from '../../engine/executors/fake/fake-adapters.js';
import { FakeExecutor, type FakeExecutorOptions } from '../../engine/executors/fake/fake-executor.js';
import type { GenerationLoop } from '../../engine/generation-loop.js';
import type { GuideThread } from '../../engine/guided/guide-messages.js';
import type { IterationReport, LoopCallbacks } from '../../engine/intake/loop-callbacks.js';
import type { LoopOptions } from '../../engine/loop/loop-options.js';
import { pageSizes } from '../../engine/peft/page-sizes.js';
import { PeftCacheManager } from '../../engine/peft/peft-cache-manager.js';
import { paddingRoom } from '../../engine/schemes/padding-room.js';
import type { DraftPolicy } from '../../engine/speculation/draft-policy.js';
import { assembleLoop } from '../../engine/worker/assemble-loop.js';
import { chunkMsOn } from '../../engine/worker/create-loop.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { ChunkingPolicy, SchedulerPolicy } from '../../scheduler/tokens/types.js';
import { StagedExecutor } from './staged-executor.js';

export interface HarnessOptions {
  modelType?: ModelType;
  statsFormat?: StatsFormat;
  maxWaitIterations?: number;
  startHorizon?: number;
  maxInterTokenLatencyMs?: number;
  maxChunkMs?: number;
  schedulerPolicy?: SchedulerPolicy;
  numBlocks?: number;
  tokensPerBlock?: number;
  maxNumSequences?: number;
  maxBatchSize?: number;
  maxNumTokens?: number;
  maxBeamWidth?: number;
  chunkingPolicy?: ChunkingPolicy;
  maxInputLen?: number;
  maxSeqLen?: number;
  terminateReqId?: bigint;
  enableBlockReuse?: boolean;
  numSecondaryBlocks?: number;
  /** Most events of cached blocks in an iteration; default 0. */
  maxEvents?: number;
  maxReturnedLogitsBytes?: number;
  enableTrtOverlap?: boolean;
  minMicroBatchSize?: number;
  /** Stages of the executor; default 1. */
  stages?: number;
  /** Stages compute as early as they can; default: as late. */
  areStagesEager?: boolean;
  maxAttentionWindow?: number;
  sinkTokenLength?: number;
  postProcessors?: PostProcessors;
  guideThread?: GuideThread;
  logitsPostProcessorTimeoutMs?: number;
  drafts?: DraftPolicy;
  /** Rows of logits for drafts; default 0. */
  maxDraftRows?: number;
  /** Room for adapters of FAKE_MODEL; default: none. */
  adapters?: HarnessAdapters;
  fake?: Partial<FakeExecutorOptions>;
  /** Where cached blocks are kept too; default: nowhere. */
  disk?: DiskStore;
}

/** Pages have room for an adapter of rank 2 on all modules. */
export interface HarnessAdapters {
  /** Slots of the executor. */
  slots: number;
  hostPages: number;
  devicePages: number;
}

const ADAPTER_SIZES = pageSizes(FAKE_MODEL, { optimalAdapterSize: 2, maxAdapterSize: 4 });

function adapterCache(room: HarnessAdapters | undefined): PeftCacheManager | null {
  if (room === undefined) return null;
  const { slots, hostPages: host, devicePages: device } = room;
  return new PeftCacheManager(ADAPTER_SIZES, { host, device }, slots);
}

function stagesOver(
  executor: FakeExecutor,
  { stages = 1, areStagesEager = false }: HarnessOptions,
): StagedExecutor | null {
  return stages > 1 ? new StagedExecutor(executor, stages, areStagesEager) : null;
}

function draftsAndDisk({ drafts, disk }: HarnessOptions) {
  return { ...(drafts && { drafts }), ...(disk && { disk: { store: disk, minPriority: 30 } }) };
}

/** A generation loop over the fake executor, in this thread, with its queues in plain view. */
export class LoopHarness implements LoopCallbacks {
  readonly wantsStatsJson = true;
  readonly waiting: InferenceRequest[] = [];
  readonly stops = new Set<bigint>();
  readonly sequenceStops: SequenceStop[] = [];
  readonly responses: Response[] = [];
  readonly stats: IterationStats[] = [];
  readonly statsJson: string[] = [];
  readonly errors: Error[] = [];
  readonly kvEvents: KvCacheEvent[] = [];
  /** Requests that took turns between waiting and running, report by report. */
  readonly turns: TurnChanges[] = [];
  readonly executor: FakeExecutor;
  /** The executor's stages; null: it has one. */
  readonly staged: StagedExecutor | null;
  readonly kvCache: KvCacheManager;
  /** null: requests have no adapters. */
  readonly adapters: PeftCacheManager | null;
  readonly loop: GenerationLoop;
  readonly maxSeqLen: number;
  /** Called with each response, while the loop is still in its iteration. */
  onResponse: (response: Response) => void = () => {};
  /** Ignore `max` and give everything. */
  ignoresMax = false;
  nowMs = 0;

  constructor(options: HarnessOptions = {}) {
    const tokensPerBlock = options.tokensPerBlock ?? 8;
    const maxSeqLen = options.maxSeqLen ?? 64;
    const numBlocks = options.numBlocks ?? 64;
    const { maxNumTokens = 64, maxNumSequences = 8 } = options;
    const maxBatchSize = options.maxBatchSize ?? maxNumSequences;
    const modelType = options.modelType ?? 'InflightFusedBatching';
    const maxBeamWidth = options.maxBeamWidth ?? 1;
    const maxSequences = maxBatchSize * maxBeamWidth;
    const padding = paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock });
    const { maxAttentionWindow, sinkTokenLength = 0, adapters } = options;
    const window = maxAttentionWindow === undefined ? {} : { maxAttentionWindow, sinkTokenLength };
    this.maxSeqLen = maxSeqLen;
    this.executor = new FakeExecutor({
      threads: 1,
      maxNumTokens,
      maxNumSequences: maxSequences + padding.sequences,
      maxLogitRows: maxSequences + (options.maxDraftRows ?? 0),
      maxSeqLen,
      numBlocks: numBlocks + padding.blocks,
      numSecondaryBlocks: options.numSecondaryBlocks ?? 0,
      firstPaddingBlock: numBlocks,
      tokensPerBlock,
      kvDtype: 'f32',
      vocabSize: 100,
      allowsOverwriting: options.enableBlockReuse ?? false,
      ...window,
      ...(adapters ? { maxAdapters: adapters.slots, maxLoraRank: 4 } : {}),
      ...options.fake,
    });
    this.staged = stagesOver(this.executor, options);
    this.kvCache = new KvCacheManager({
      numBlocks,
      tokensPerBlock,
      maxSeqLen,
      enableBlockReuse: options.enableBlockReuse ?? false,
      ...{ numSecondaryBlocks: options.numSecondaryBlocks ?? 0, maxEvents: options.maxEvents ?? 0 },
      ...{ listsUnwritten: options.disk !== undefined, ...window },
    });
    this.adapters = adapterCache(adapters);
    const chunking = options.chunkingPolicy && { policy: options.chunkingPolicy, unit: tokensPerBlock };
    const { maxWaitIterations, startHorizon, maxInterTokenLatencyMs, maxChunkMs } = options;
    const loopOptions: LoopOptions = {
      modelType,
      statsFormat: options.statsFormat ?? 'BatchManager',
      ...{ maxWaitIterations, startHorizon, maxInterTokenLatencyMs },
      chunkMs: chunkMsOn('native', maxChunkMs),
      schedulerPolicy: options.schedulerPolicy ?? 'GUARANTEED_NO_EVICT',
      microBatch: { maxBatchSize, maxNumTokens, maxSequences, ...(chunking ? { chunking } : {}) },
      maxNumSequences,
      maxInputLen: options.maxInputLen ?? maxSeqLen,
      maxSeqLen,
      maxBeamWidth,
      maxTopLogProbs: null,
      checkIntegrity: true,
      enableTrtOverlap: options.enableTrtOverlap ?? false,
      logitsPostProcessorTimeoutMs: options.logitsPostProcessorTimeoutMs,
      ...(options.minMicroBatchSize === undefined ? {} : { minMicroBatchSize: options.minMicroBatchSize }),
      ...(options.maxReturnedLogitsBytes === undefined
        ? {}
        : { maxReturnedLogitsBytes: options.maxReturnedLogitsBytes }),
      ...(options.terminateReqId === undefined ? {} : { terminateReqId: options.terminateReqId }),
    };
    this.loop = assembleLoop(loopOptions, {
      executor: this.staged ?? this.executor,
      kvCache: this.kvCache,
      rope: new RopeTable({ inverseFrequencies: Float32Array.of(1), scale: 1 }, null, maxNumSequences),
      callbacks: this,
      ...(this.adapters === null ? {} : { adapters: { cache: this.adapters, model: FAKE_MODEL } }),
      ...(options.postProcessors ? { postProcessors: options.postProcessors } : {}),
      ...(options.guideThread ? { guideThread: options.guideThread } : {}),
      ...draftsAndDisk(options),
      clock: () => this.nowMs,
      drawSeed: () => 4711n,
    });
  }

  getInferenceRequests(max: number): InferenceRequest[] {
    return this.waiting.splice(0, this.ignoresMax ? this.waiting.length : max);
  }

  pollStopSignals(): Iterable<bigint> {
    const stops = [...this.stops];
    this.stops.clear();
    return stops;
  }

  pollSequenceStops(): Iterable<SequenceStop> {
    return this.sequenceStops.splice(0);
  }

  endIteration(report: IterationReport): void {
    for (const response of unpackResponses(report.responses.snapshot(), this.maxSeqLen)) {
      this.responses.push(response);
      this.onResponse(response);
    }
    if (report.stats) this.stats.push(report.stats);
    if (report.json !== null) this.statsJson.push(report.json);
    this.kvEvents.push(...(report.kvEvents ?? []));
  }

  noteTurns(turns: TurnChanges): void {
    this.turns.push(turns);
  }

  reportError(error: Error): void {
    this.errors.push(error);
  }

  /** Hands the requests to the loop and iterates until all of them have ended. */
  run(...requests: readonly InferenceRequest[]): this {
    this.waiting.push(...requests);
    this.runToEnd();
    return this;
  }

  /** Iterates until nothing is active or waiting. Throws if that takes more than `limit` iterations. */
  runToEnd(limit = 100_000): void {
    for (let i = 0; i < limit; i++) {
      if (!this.loop.iterate() && this.waiting.length === 0) return;
    }
    throw new Error(`The loop was still busy after ${limit} iterations.`);
  }

  /** All that was sent for one of the sequences of a request with several, put together. */
  sequenceOf(requestId: bigint, index: number): RequestResult {
    const all = this.responses.filter((response) => response.requestId === requestId);
    const own = all.filter(({ outputs }) => tensorOf(outputs, 'sequence_index')?.data[0] === index);
    return collectResult(own.map((response, i) => ({ ...response, final: i === own.length - 1 })));
  }

  /** All that was sent for a request, put together. */
  resultOf(requestId: bigint): RequestResult {
    return collectResult(this.responses.filter((response) => response.requestId === requestId));
  }
}

export interface RequestResult {
  tokens: number[];
  logProbs: number[];
  topTokens: number[];
  finishReason: number;
  sequenceLength: number;
  cumLogProb: number | undefined;
  error: string;
  numResponses: number;
}

/** Puts the responses of one request together; throws unless exactly the last one is final. */
export function collectResult(responses: readonly Response[]): RequestResult {
  const last = responses.at(-1);
  if (!last?.final) throw new Error('The last response is not final.');
  if (responses.slice(0, -1).some((response) => response.final)) throw new Error('Two final responses.');
  const all = (name: string) =>
    responses.flatMap((r) => Array.from(tensorOf(r.outputs, name)?.data ?? [], Number));
  const finalNumber = (name: string) => tensorOf(last.outputs, name)?.data[0];
  return {
    tokens: all('output_ids'),
    logProbs: all('output_log_probs'),
    topTokens: all('top_token_ids'),
    finishReason: Number(finalNumber('finish_reasons') ?? 0),
    sequenceLength: Number(finalNumber('sequence_length') ?? 0),
    cumLogProb: finalNumber('cum_log_probs') as number | undefined,
    error: last.error,
    numResponses: responses.length,
  };
}

export function tensorOf(outputs: readonly NamedTensor[], name: string): NamedTensor | undefined {
  return outputs.find((output) => output.name === name);
}

const one = (data: Tensor['data']): Tensor => ({ shape: [1], data });
export const i32 = (value: number): Tensor => one(Int32Array.of(value));
export const f32 = (value: number): Tensor => one(Float32Array.of(value));
export const u64 = (value: bigint): Tensor => one(BigUint64Array.of(value));
export const text = (value: string): Tensor => {
  const data = new TextEncoder().encode(value);
  return { shape: [data.length], data };
};
export const bool = (value: boolean): Tensor => one(Uint8Array.of(value ? 1 : 0));

/** A request with the tensors that are always needed; streams unless `inputs` say otherwise. */
export function makeRequest(
  requestId: bigint,
  promptTokens: readonly number[],
  maxNewTokens: number,
  inputs: Record<string, Tensor> = {},
  priority?: number,
): InferenceRequest {
  return {
    requestId,
    inputs: {
      input_ids: { shape: [1, promptTokens.length], data: Int32Array.from(promptTokens) },
      request_output_len: { shape: [1, 1], data: Int32Array.of(maxNewTokens) },
      streaming: bool(true),
      ...inputs,
    },
    ...(priority === undefined ? {} : { priority }),
  };
}

/** The result of a request that has the engine to itself. */
export function runAlone(request: InferenceRequest, options: HarnessOptions = {}): RequestResult {
  return new LoopHarness(options).run(request).resultOf(request.requestId);
}
