import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { type MessagePort, workerData } from 'node:worker_threads';
import { option, says } from '../../base/named-text.js';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import { DEFAULT_DISK_CACHE_BYTES } from '../../callbacks/options/kv-cache-options.js';
import { DEFAULT_IDLE_POLL_INTERVAL_MS } from '../../callbacks/options/optional-params.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { WorkerData } from '../../callbacks/worker-data.js';
import {
  Doorbell,
  type EngineInfo,
  type GuideThreadSetup,
  type WorkerMessage,
} from '../../callbacks/worker-messages.js';
import { isGguf } from '../../models/tokenizer/tokenizer-files.js';
import { cacheIdentity, digestOfPath, engineFingerprint } from '../building/engine-fingerprint.js';
import { HostCalls } from '../decoding/host-calls.js';
import { PostProcessors, postProcessorsOf } from '../decoding/post-processors.js';
import { type BlockFormat, fileBytes, stateKey } from '../disk-cache/block-file.js';
import { DiskThread } from '../disk-cache/disk-thread.js';
import type { Executor } from '../executors/executor.js';
import type { LoadExecutor, LoadedExecutor } from '../executors/loaded-executor.js';
import type { GenerationLoop } from '../generation-loop.js';
import { GuideThreadPort } from '../guided/guide-thread.js';
import { callbacksOfModule, ModuleLoopCallbacks } from '../intake/module-callbacks.js';
import { PortCallbacks } from '../intake/port-callbacks.js';
import { canMove } from '../loop/block-transfer.js';
import type { LoopEnvironment } from '../loop/loop-options.js';
import { roomOf } from '../peft/page-sizes.js';
import { chunkMsOn, createLoop, poolBlocks } from './create-loop.js';
import { loadExecutor } from './load-executor.js';
import { runWorker } from './run-worker.js';

/**
 * Number of events of one iteration that are kept if a client listens: more than a long prompt has blocks.
 */
const DEFAULT_EVENT_BUFFER_SIZE = 16_384;
/** Time to wait for promises of a callback module when the loop has ended. */
const MODULE_END_MS = 1000;
/** Longest time that the engine waits for the list of what lies on the disk. */
const LISTING_MS = 5000;
/** Interval at which the loop looks whether a disk that owes a reply is still there. */
const DISK_LOOK_MS = 500;
/** Longest time after the last request in which cached blocks are still written to the disk. */
const WRITING_MS = 5000;
/**
 * Interval at which the doorbell is checked by a thread that has to let promises proceed, and so cannot sleep at it.
 */
const BELL_LOOK_MS = 20;

const data = workerData as WorkerData;
await runWorker(data, () => main(data));

/**
 * Loads the engine, runs the loop until it is sent the command to end and has nothing left to do, and reports
 * the end.
 */
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
    ...(setup.seat === null ? {} : { seat: setup.seat }),
  });
  const portCallbacks = new PortCallbacks(port, setup.wants);
  let wantsKvEvents = setup.wants.kvEvents;
  let moduleCallbacks: ModuleLoopCallbacks | null = null;
  if (setup.callbackModule) {
    const module = callbacksOfModule(await import(setup.callbackModule), setup.callbackModule);
    wantsKvEvents ||= module.onKvCacheEvents !== undefined;
    const limits = { ...loaded.limits, terminateReqId: setup.terminateReqId };
    moduleCallbacks = new ModuleLoopCallbacks(module, limits, portCallbacks);
  }
  const postProcessors = await loadPostProcessors(setup);
  const callbacks = moduleCallbacks ?? portCallbacks;
  const digest = loaded.digest ?? digestOfPath(setup.enginePath);
  const disk = openDisk(params, loaded.executor, digest, setup.doorbell);
  if (disk instanceof Error) callbacks.reportError(disk);
  const store = disk instanceof Error ? null : disk;
  const loop = createLoop(
    loaded,
    { callbacks, postProcessors, ...guidesOf(port, setup.enginePath, loaded) },
    { ...setup, params: wantsKvEvents ? withEventBuffer(params) : params },
    store,
  );
  store?.wait(LISTING_MS);
  const info = describe(loaded, digest, params, performance.now() - startMs);
  port.postMessage({ type: 'ready', info } satisfies WorkerMessage);
  if (setup.lost !== null) moduleCallbacks?.failLost(setup.lost.requestIds, setup.lost.reason);
  const idleTimeoutMs = setup.callbackModule
    ? (params.idlePollIntervalMs ?? DEFAULT_IDLE_POLL_INTERVAL_MS)
    : Number.POSITIVE_INFINITY;
  const signs = { doorbell: new Doorbell(setup.doorbell), heartbeat: new Heartbeat(setup.heartbeat) };
  await run(loop, portCallbacks, moduleCallbacks, signs, idleTimeoutMs);
  await moduleCallbacks?.end(MODULE_END_MS);
  store?.close();
  loaded.draft?.executor.close();
  loaded.executor.close();
  port.postMessage({ type: 'closed' } satisfies WorkerMessage);
  port.close();
}

/** The post-processors of the module and those of the host's thread. */
async function loadPostProcessors({
  logitsPostProcessorModule: module,
  hostPostProcessors: host,
}: Omit<WorkerData, 'port' | 'params'>): Promise<PostProcessors> {
  const own = module ? postProcessorsOf(await import(module), module) : new PostProcessors(new Map());
  return host === null ? own : own.with(new HostCalls(host));
}

/** Gives a buffer to users with a callback for events, who then need not ask for one. */
function withEventBuffer(params: WorkerData['params']): WorkerData['params'] {
  const { eventBufferMaxSize = DEFAULT_EVENT_BUFFER_SIZE, ...config } = params.kvCacheConfig ?? {};
  return { ...params, kvCacheConfig: { ...config, eventBufferMaxSize } };
}

/** Runs iterations one after another while there is work; otherwise sleeps at the doorbell. */
async function run(
  loop: GenerationLoop,
  port: PortCallbacks,
  module: ModuleLoopCallbacks | null,
  { doorbell, heartbeat }: { doorbell: Doorbell; heartbeat: Heartbeat },
  idleTimeoutMs: number,
): Promise<void> {
  let endMs = 0;
  for (;;) {
    heartbeat.beat();
    const bell = doorbell.read();
    const wasBusy = loop.iterate();
    if (module !== null) port.pollStopSignals(); // with callbacks in a module the port brings only the shutdown
    port.answerCacheResets(loop);
    port.answerBlockAsks(loop);
    for (const taskId of port.takeForgottenAdapters()) loop.forgetAdapter(taskId);
    port.reportFormation(wasBusy, performance.now(), () => loop.formation());
    if (port.shutdownAsked) loop.drain();
    if (loop.isDraining) port.noteDraining();
    if (wasBusy || !loop.isDraining) endMs = performance.now() + WRITING_MS;
    const mayEnd = !loop.isWriting || performance.now() > endMs;
    if (loop.isDraining && !wasBusy && !port.hasRequests && mayEnd) return;
    if (wasBusy || port.hasRequests) {
      if (module?.hasPending) await module.turn(0);
      continue;
    }
    port.idle(loop.freePlaces);
    heartbeat.sleep();
    if (module?.hasPending) await waitWithModule(module, doorbell, bell, idleTimeoutMs);
    else doorbell.wait(bell, loop.isWriting || loop.isErasing ? DISK_LOOK_MS : idleTimeoutMs);
  }
}

/**
 * Waits without work, but lets promises of the module proceed: until one of them settles, the bell rings, or the time
 * is over.
 */
async function waitWithModule(
  module: ModuleLoopCallbacks,
  doorbell: Doorbell,
  bell: number,
  timeoutMs: number,
): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  do {
    if (await module.turn(Math.min(BELL_LOOK_MS, untilMs - performance.now()))) return;
  } while (doorbell.read() === bell && performance.now() < untilMs);
}

/**
 * Creates the port to the thread that follows guides with the engine's tokenizer; the thread is started when a request
 * first has a guide.
 */
function guidesOf(
  port: MessagePort,
  enginePath: string,
  { executor }: LoadedExecutor,
): Pick<LoopEnvironment, 'guideThread'> {
  if (!isGguf(enginePath) && !existsSync(join(enginePath, 'tokenizer.json'))) return {};
  const ask = (setup: GuideThreadSetup | null) =>
    port.postMessage({ type: 'guide-thread', setup } satisfies WorkerMessage, setup ? [setup.port] : []);
  const starter = { start: ask, stop: () => ask(null) };
  return { guideThread: new GuideThreadPort(starter, { enginePath, vocabSize: executor.vocabSize }) };
}

/** Where steps overlap, a busy engine hardly ever has a moment in which none runs. */
function canMoveBlocks({ kvCacheConfig, enableTrtOverlap = false }: WorkerData['params']): boolean {
  return kvCacheConfig?.enableBlockReuse === true && !enableTrtOverlap;
}

function readingOf(executor: LoadedExecutor['executor']): Pick<EngineInfo, 'expertReading'> {
  const reads = executor.expertReads?.() ?? null;
  if (reads === null) return {};
  const { readBytes: _, ...expertReading } = reads;
  return { expertReading };
}

function describe(
  { executor, draft, limits, adapters, ...loaded }: LoadedExecutor,
  digest: string,
  params: WorkerData['params'],
  loadMs: number,
): EngineInfo {
  const { options } = executor;
  const { endTokenIds, padTokenId, executorFallback = null } = loaded;
  return {
    fingerprint: engineFingerprint(digest, executor),
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
    bytesPerBlock:
      canMoveBlocks(params) && canMove(executor.blockAccess) ? executor.blockAccess!.bytesPerBlock : null,
    bytesPerState: executor.blockAccess?.states?.bytesPerSlot ?? 0,
    maxChunkMs: chunkMsOn(executor.name, params.maxChunkMs)?.most ?? null,
    maxAttentionWindow: limits.window?.maxAttentionWindow ?? null,
    adapters: adapters === undefined || executor.adapters === undefined ? null : roomOf(adapters),
    kvDtype: options.kvDtype,
    endTokenIds,
    padTokenId,
    memory: { ...executor.memory(), draft: draft?.executor.memory() ?? null },
    ...readingOf(executor),
    loadMs,
  };
}

/** Why an engine keeps no blocks on a disk although its options ask for it. The message is a sentence. */
type NoDisk = Error;

/**
 * Starts the thread of an engine's folder for blocks. null: the options name none.
 * @param digest see engineDigest; '': the engine's content is not known, so its blocks are of use to no later one
 * @returns an error where the executor's blocks cannot be kept
 * @throws ParameterError where the folder may not even hold one block
 */
function openDisk(
  { kvCacheConfig = {} }: WorkerData['params'],
  executor: Executor,
  digest: string,
  doorbell: SharedArrayBuffer,
): DiskThread | NoDisk | null {
  const { diskCachePath: path, diskCacheSize: maxBytes = DEFAULT_DISK_CACHE_BYTES } = kvCacheConfig;
  if (path === undefined) return null;
  const { blockAccess: access } = executor;
  if (access === undefined)
    return new Error(noDisk(path, `the executor (${executor.name}) gives no blocks here`));
  const { bytesPerBlock, states } = access;
  if (bytesPerBlock === 0)
    return new Error(noDisk(path, 'no layer attends, so there is nothing in the blocks'));
  const hasStates = (executor.options.numStateSlots ?? 0) > 0;
  if (hasStates && states === undefined)
    return new Error(noDisk(path, `the executor (${executor.name}) gives no states here`));
  if (digest === '') return new Error(noDisk(path, 'the content of the engine is not known'));
  const identity = cacheIdentity(digest, executor);
  const format = { identity, bytesPerBlock, bytesPerState: states?.bytesPerSlot ?? 0 };
  checkRoom(maxBytes, format, executor.options.tokensPerBlock);
  return new DiskThread({ path, maxBytes, format, doorbell });
}

/** The disk cache is of use if it holds the first block of a prompt at least, with the states after it. */
function checkRoom(maxBytes: number, format: BlockFormat, tokensPerBlock: number): void {
  const ofStates = format.bytesPerState === 0 ? 0 : fileBytes(format, stateKey(0), tokensPerBlock);
  const least = fileBytes(format, 0, tokensPerBlock) + ofStates;
  if (maxBytes >= least) return;
  const what = ofStates === 0 ? '' : ' and the states after it';
  throw new ParameterError(
    'kvCacheConfig.diskCacheSize',
    says`${option('kvCacheConfig.diskCacheSize')} is ${maxBytes}; the files of one KV cache block${what} take ${least} bytes.`,
  );
}

function noDisk(path: string, why: string): string {
  return `No blocks of the KV cache are kept in ${path}: ${why}.`;
}
