import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { type MessagePort, workerData } from 'node:worker_threads';
import { callbacksOfModule, ModuleLoopCallbacks } from '../callbacks/module-callbacks.js';
import { PortCallbacks } from '../callbacks/port-callbacks.js';
import { Doorbell, type EngineInfo, type WorkerMessage } from '../callbacks/worker-messages.js';
import { DEFAULT_OFFLOAD_MIN_PRIORITY } from '../kvcache/block-cache.js';
import { KvCacheManager } from '../kvcache/kv-cache-manager.js';
import type { SchedulerPolicy } from '../scheduler/types.js';
import { PostProcessors, postProcessorsOf } from './decoding/post-processors.js';
import { DEFAULT_IDLE_POLL_INTERVAL_MS, DEFAULT_MAX_DRAFT_LEN } from './engine-limits.js';
import { GenerationLoop } from './generation-loop.js';
import type { ModelType, OptionalParams } from './gpt-manager-options.js';
import type { GuideThreadSetup } from './guided/guide-messages.js';
import { GuideThreadPort } from './guided/guide-thread.js';
import { Heartbeat } from './heartbeat.js';
import { type LoadExecutor, type LoadedExecutor, loadExecutor } from './load-executor.js';
import type { LoopEnvironment } from './loop/loop-options.js';
import { DraftModel } from './speculation/draft-model.js';
import { Speculation } from './speculation/speculation.js';

/** What the GptManager gives its worker. */
export interface WorkerData {
  enginePath: string;
  modelType: ModelType;
  schedulerPolicy: SchedulerPolicy;
  maxBeamWidth: number;
  params: Omit<OptionalParams, 'executorModule' | 'logitsPostProcessorModule'>;
  executorModule: string | null;
  logitsPostProcessorModule: string | null;
  callbackModule: string | null;
  terminateReqId: bigint | null;
  /** With callbacks in a module: requests that a worker which died has left without a final response. */
  lost: { requestIds: bigint[]; reason: string } | null;
  wants: { statsJson: boolean; stats: boolean };
  port: MessagePort;
  doorbell: SharedArrayBuffer;
  heartbeat: SharedArrayBuffer;
}

const data = workerData as WorkerData;
await main(data);

/** Loads the engine, runs the loop until it is told to end and has nothing left to do, and says so. */
async function main({ port, params, ...setup }: WorkerData): Promise<void> {
  const startMs = performance.now();
  const load: LoadExecutor = setup.executorModule
    ? ((await import(setup.executorModule)) as { loadExecutor: LoadExecutor }).loadExecutor
    : loadExecutor;
  const loaded = await load({
    enginePath: setup.enginePath,
    params,
    modelType: setup.modelType,
    maxBeamWidth: setup.maxBeamWidth,
    heartbeat: new Int32Array(setup.heartbeat),
  });
  const portCallbacks = new PortCallbacks(port, setup.wants);
  const moduleCallbacks = setup.callbackModule
    ? new ModuleLoopCallbacks(
        callbacksOfModule(await import(setup.callbackModule), setup.callbackModule),
        loaded.limits.maxSeqLen,
        portCallbacks,
      )
    : null;
  const postProcessors = setup.logitsPostProcessorModule
    ? postProcessorsOf(await import(setup.logitsPostProcessorModule), setup.logitsPostProcessorModule)
    : new PostProcessors(new Map());
  const callbacks = moduleCallbacks ?? portCallbacks;
  const loop = createLoop(
    loaded,
    { callbacks, postProcessors, ...guidesOf(port, setup.enginePath, loaded) },
    setup,
    params,
  );
  const info = describe(loaded, performance.now() - startMs);
  port.postMessage({ type: 'ready', info } satisfies WorkerMessage);
  if (setup.lost !== null) moduleCallbacks?.failLost(setup.lost.requestIds, setup.lost.reason);
  const idleTimeoutMs = setup.callbackModule
    ? (params.idlePollIntervalMs ?? DEFAULT_IDLE_POLL_INTERVAL_MS)
    : Number.POSITIVE_INFINITY;
  const signs = { doorbell: new Doorbell(setup.doorbell), heartbeat: new Heartbeat(setup.heartbeat) };
  run(loop, portCallbacks, setup.callbackModule !== null, signs, idleTimeoutMs);
  loaded.draft?.executor.close();
  loaded.executor.close();
  port.postMessage({ type: 'closed' } satisfies WorkerMessage);
  port.close();
}

/** While there is work: one iteration after another. While there is none: asleep at the doorbell. */
function run(
  loop: GenerationLoop,
  port: PortCallbacks,
  hasModule: boolean,
  { doorbell, heartbeat }: { doorbell: Doorbell; heartbeat: Heartbeat },
  idleTimeoutMs: number,
): void {
  for (;;) {
    heartbeat.beat();
    const bell = doorbell.read();
    const wasBusy = loop.iterate();
    if (hasModule) port.pollStopSignals(); // with callbacks in a module the port brings nothing but the shutdown
    port.answerCacheResets(() => loop.resetCache());
    port.reportFormation(wasBusy, performance.now(), () => loop.formation());
    if (port.shutdownAsked) loop.drain();
    if (loop.isDraining) port.noteDraining();
    if (loop.isDraining && !wasBusy) return;
    if (wasBusy) continue;
    port.idle(loop.freePlaces);
    heartbeat.sleep();
    doorbell.wait(bell, idleTimeoutMs);
  }
}

function createLoop(
  loaded: LoadedExecutor,
  brought: Pick<LoopEnvironment, 'callbacks' | 'postProcessors' | 'guideThread'>,
  setup: Pick<WorkerData, 'modelType' | 'schedulerPolicy' | 'maxBeamWidth' | 'terminateReqId'>,
  params: WorkerData['params'],
): GenerationLoop {
  const { executor, limits, rope } = loaded;
  const clock = () => performance.timeOrigin + performance.now();
  const { tokensPerBlock } = executor.options;
  const { enableBlockReuse, enablePartialReuse, copyOnPartialReuse, eventBufferMaxSize, ...swapping } =
    params.kvCacheConfig ?? {};
  const kvCache = new KvCacheManager({
    numBlocks: poolBlocks(executor, limits),
    tokensPerBlock,
    maxSeqLen: limits.maxSeqLen,
    ...limits.window?.options,
    enableBlockReuse: enableBlockReuse ?? false,
    enablePartialReuse: enablePartialReuse ?? true,
    copyOnPartialReuse: copyOnPartialReuse ?? true,
    numSecondaryBlocks: executor.options.numSecondaryBlocks ?? 0,
    secondaryOffloadMinPriority: swapping.secondaryOffloadMinPriority ?? DEFAULT_OFFLOAD_MIN_PRIORITY,
    maxEvents: eventBufferMaxSize ?? 0,
  });
  return new GenerationLoop(
    {
      ...limits,
      modelType: setup.modelType,
      schedulerPolicy: setup.schedulerPolicy,
      maxBeamWidth: setup.maxBeamWidth,
      enableTrtOverlap: params.enableTrtOverlap ?? false,
      ...(params.minMicroBatchSize === undefined ? {} : { minMicroBatchSize: params.minMicroBatchSize }),
      statsFormat: params.statsFormat ?? 'BatchManager',
      maxWaitIterations: params.maxWaitIterations,
      maxWaitingRequests: params.maxWaitingRequests,
      startHorizon: params.startHorizon,
      logitsPostProcessorTimeoutMs: params.logitsPostProcessorTimeoutMs,
      maxInterTokenLatencyMs: params.maxInterTokenLatencyMs,
      maxChunkMs: params.maxChunkMs,
      checkIntegrity: params.checkIntegrity ?? false,
      ...(setup.terminateReqId === null ? {} : { terminateReqId: setup.terminateReqId }),
    },
    {
      executor,
      kvCache,
      rope,
      ...brought,
      ...(loaded.draft === undefined ? {} : { draftMemory: loaded.draft.executor.memory() }),
      ...(limits.maxDraftRows > 0
        ? { drafts: speculationOf(limits, params, draftModelOf(loaded, brought.callbacks, clock)) }
        : {}),
      clock,
      drawSeed: () => randomBytes(8).readBigUInt64LE(),
    },
  );
}

function speculationOf(
  { microBatch, maxDraftRows }: LoadedExecutor['limits'],
  params: WorkerData['params'],
  draftModel: DraftModel | null,
): Speculation {
  return new Speculation({
    draftModel,
    usesNgrams: params.speculate === 'ngram',
    maxDraftLen: Math.min(params.maxDraftLen ?? DEFAULT_MAX_DRAFT_LEN, maxDraftRows),
    maxRows: microBatch.maxSequences + maxDraftRows,
  });
}

function draftModelOf(
  { draft }: LoadedExecutor,
  callbacks: LoopEnvironment['callbacks'],
  clock: () => number,
): DraftModel | null {
  if (draft === undefined) return null;
  const { numBlocks, tokensPerBlock, maxSeqLen } = draft.executor.options;
  return new DraftModel({
    ...draft,
    kvCache: new KvCacheManager({ numBlocks, tokensPerBlock, maxSeqLen }),
    clock,
    onFailure: (error) => callbacks.reportError(error),
  });
}

/** Guides are followed with the engine's tokenizer, in a thread that is started when a request first has one. */
function guidesOf(
  port: MessagePort,
  enginePath: string,
  { executor }: LoadedExecutor,
): Pick<LoopEnvironment, 'guideThread'> {
  if (!existsSync(join(enginePath, 'tokenizer.json'))) return {};
  const ask = (setup: GuideThreadSetup | null) =>
    port.postMessage({ type: 'guide-thread', setup } satisfies WorkerMessage, setup ? [setup.port] : []);
  const starter = { start: ask, stop: () => ask(null) };
  return { guideThread: new GuideThreadPort(starter, { enginePath, vocabSize: executor.vocabSize }) };
}

/** Blocks that requests can have; those for padding lie behind them. */
function poolBlocks({ options }: LoadedExecutor['executor'], { padding }: LoadedExecutor['limits']): number {
  return options.numBlocks - padding.blocks;
}

function describe(
  { executor, draft, limits, endTokenIds, padTokenId, executorFallback = null }: LoadedExecutor,
  loadMs: number,
): EngineInfo {
  const { options } = executor;
  return {
    executor: executor.name,
    executorFallback,
    instructionSet: executor.instructionSet,
    threads: options.threads,
    vocabSize: executor.vocabSize,
    maxInputLen: limits.maxInputLen,
    maxSeqLen: limits.maxSeqLen,
    maxNumSequences: limits.maxNumSequences,
    maxBatchSize: limits.microBatch.maxBatchSize,
    maxNumTokens: limits.microBatch.maxNumTokens,
    maxSequences: limits.microBatch.maxSequences,
    maxTopLogProbs: limits.maxTopLogProbs ?? executor.vocabSize,
    numBlocks: poolBlocks(executor, limits),
    tokensPerBlock: options.tokensPerBlock,
    maxAttentionWindow: limits.window?.maxAttentionWindow ?? null,
    kvDtype: options.kvDtype,
    endTokenIds,
    padTokenId,
    memory: { ...executor.memory(), draft: draft?.executor.memory() ?? null },
    loadMs,
  };
}
