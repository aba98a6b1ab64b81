import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';
import { CHUNK_MS } from '../../callbacks/options/words.js';
import { drawSeed } from '../../callbacks/sampling-params.js';
import type { WorkerData } from '../../callbacks/worker-data.js';
import type { ExecutorMemory } from '../../callbacks/worker-messages.js';
import { DEFAULT_OFFLOAD_MIN_PRIORITY } from '../../kvcache/block-cache.js';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { DEFAULT_STATE_INTERVAL } from '../../kvcache/kv-cache-options.js';
import type { ChunkMs } from '../../scheduler/tokens/types.js';
import type { DiskStore } from '../disk-cache/disk-messages.js';
import type { Executor } from '../executors/executor.js';
import type { LoadedDraft, LoadedExecutor } from '../executors/loaded-executor.js';
import type { GenerationLoop } from '../generation-loop.js';
import type { LoopEnvironment } from '../loop/loop-options.js';
import { PeftCacheManager } from '../peft/peft-cache-manager.js';
import { DraftModel, type DraftModelParts } from '../speculation/draft-model.js';
import { HiddenRows } from '../speculation/hidden-rows.js';
import { Speculation } from '../speculation/speculation.js';
import { assembleLoop } from './assemble-loop.js';

/** Settings of a loop from the GptManager's options. */
export type LoopSetup = Pick<
  WorkerData,
  'modelType' | 'schedulerPolicy' | 'maxBeamWidth' | 'terminateReqId' | 'params'
>;

/**
 * Creates the loop over a loaded executor, with its KV cache and its source of drafts.
 * @param diskStore where cached blocks are kept too; null: nowhere
 * @param newDraftModel makes another draft model than usual, for benches
 */
export function createLoop(
  loaded: LoadedExecutor,
  brought: Pick<LoopEnvironment, 'callbacks' | 'postProcessors' | 'guideThread'>,
  { params, ...setup }: LoopSetup,
  diskStore: DiskStore | null = null,
  newDraftModel: (parts: DraftModelParts) => DraftModel = (parts) => new DraftModel(parts),
): GenerationLoop {
  const { executor, limits, rope } = loaded;
  const clock = () => performance.timeOrigin + performance.now();
  const drafting = draftPartsOf(loaded, brought.callbacks, clock);
  const { tokensPerBlock } = executor.options;
  const { enableBlockReuse, enablePartialReuse, copyOnPartialReuse, eventBufferMaxSize, ...others } =
    params.kvCacheConfig ?? {};
  const minPriority = others.secondaryOffloadMinPriority ?? DEFAULT_OFFLOAD_MIN_PRIORITY;
  const kvCache = new KvCacheManager({
    numBlocks: poolBlocks(executor, limits),
    tokensPerBlock,
    maxSeqLen: limits.maxSeqLen,
    ...limits.window?.options,
    enableBlockReuse: enableBlockReuse ?? false,
    enablePartialReuse: enablePartialReuse ?? true,
    copyOnPartialReuse: copyOnPartialReuse ?? true,
    numSecondaryBlocks: executor.options.numSecondaryBlocks ?? 0,
    secondaryOffloadMinPriority: minPriority,
    maxEvents: eventBufferMaxSize ?? 0,
    listsUnwritten: diskStore !== null,
    ...(loaded.states !== undefined && {
      states: { ...loaded.states, interval: others.stateInterval ?? DEFAULT_STATE_INTERVAL },
    }),
  });
  return assembleLoop(
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
      chunkMs: chunkMsOn(executor.name, params.maxChunkMs),
      checkIntegrity: params.checkIntegrity ?? false,
      ...(setup.terminateReqId === null ? {} : { terminateReqId: setup.terminateReqId }),
    },
    {
      executor,
      kvCache,
      rope,
      ...brought,
      ...(diskStore === null ? {} : { disk: { store: diskStore, minPriority } }),
      ...loopAdapters(loaded),
      ...(loaded.draft === undefined ? {} : { draftMemory: draftMemory(loaded.draft) }),
      expertReadBytes: () => readBytesOf(executor) + readBytesOf(loaded.draft?.executor),
      ...(limits.maxDraftRows > 0
        ? { drafts: speculationOf(limits, params, drafting && newDraftModel(drafting)) }
        : {}),
      clock,
      drawSeed,
    },
  );
}

/** Requests can have adapters if caches for them were asked for and the executor has slots. */
function loopAdapters({ adapters, executor }: LoadedExecutor): Pick<LoopEnvironment, 'adapters'> {
  if (adapters === undefined || executor.adapters === undefined) return {};
  const { model, sizes, pages } = adapters;
  return { adapters: { model, cache: new PeftCacheManager(sizes, pages, executor.adapters.maxSlots) } };
}

function speculationOf(
  { microBatch, maxDraftRows, maxDraftLen }: LoadedExecutor['limits'],
  params: WorkerData['params'],
  draftModel: DraftModel | null,
): Speculation {
  return new Speculation({
    draftModel,
    usesNgrams: params.speculate === 'ngram',
    maxDraftLen,
    maxRows: microBatch.maxSequences + maxDraftRows,
  });
}

const readBytesOf = (executor: Executor | undefined) => executor?.expertReads?.()?.readBytes ?? 0;

/** Memory that drafting takes: a head's weights are counted with the model's, whose files it reads. */
function draftMemory({ executor, head }: LoadedDraft): ExecutorMemory {
  const memory = executor.memory();
  return head === undefined ? memory : { ...memory, weightBytes: 0 };
}

function draftPartsOf(
  { draft }: LoadedExecutor,
  callbacks: LoopEnvironment['callbacks'],
  clock: () => number,
): DraftModelParts | null {
  if (draft === undefined) return null;
  const { numBlocks, tokensPerBlock, maxSeqLen, numStateSlots, stateDraftRows = 0 } = draft.executor.options;
  const states = numStateSlots && { numSlots: numStateSlots, numSnapshots: 0, draftRows: stateDraftRows };
  const { executor, rope, costShare, head } = draft;
  return {
    executor,
    rope,
    costShare,
    ...(head !== undefined && { hidden: new HiddenRows(head.width, head.most) }),
    kvCache: new KvCacheManager({ numBlocks, tokensPerBlock, maxSeqLen, ...(states && { states }) }),
    clock,
    onFailure: (error) => callbacks.reportError(error),
  };
}

/** Number of blocks for requests; those for padding come after them. */
export function poolBlocks(
  { options }: LoadedExecutor['executor'],
  { padding }: LoadedExecutor['limits'],
): number {
  return options.numBlocks - padding.blocks;
}

/** What a `maxChunkMs` means on an executor; undefined: no bound. A user's own executor counts as native. */
export function chunkMsOn(executor: string, maxChunkMs: number | 'auto' | undefined): ChunkMs | undefined {
  if (maxChunkMs === undefined) return undefined;
  if (maxChunkMs !== 'auto') return { least: maxChunkMs, most: maxChunkMs };
  return Object.hasOwn(CHUNK_MS, executor) ? CHUNK_MS[executor as ExecutorName] : CHUNK_MS.native;
}
