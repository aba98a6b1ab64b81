import { retell, textOf } from '../../base/skein-error.js';
import { DEFAULT_KV_FRACTION, DEFAULT_STATE_FRACTION } from '../../callbacks/options/kv-cache-options.js';
import { type AvailableMemory, availableMemory } from '../../kvcache/available-memory.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { kvBytesPerBlock, stateBytesPerSlot, stateSlots } from '../../kvcache/kv-cache-size.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import { RopeTable } from '../batch/rope-table.js';
import { type Engine, EngineError, loadableEngine } from '../building/engine.js';
import { engineDigest } from '../building/engine-digest.js';
import { engineToLoad } from '../building/engine-to-load.js';
import type { ExecutorOptions } from '../executors/executor.js';
import type { ExecutorKind, MeasuredMemory } from '../executors/executor-kind.js';
import { checkExpertFraction, withExpertHint } from '../executors/expert-fraction.js';
import type { LoadedExecutor, LoadRequest } from '../executors/loaded-executor.js';
import {
  addMemory,
  afterLoading,
  besideAdapters,
  besideStates,
  withExperts,
  withinPools,
} from '../executors/memory-budget.js';
import { likelyExecutor, requireSupport, startOnExecutor } from '../kinds/choose-executor.js';
import { type EngineLimits, kvBlocks, resolveLimits, secondaryBlocks } from '../options/engine-limits.js';
import { adapterRoom, hostCacheBytes, pageSizes, slotOptions } from '../peft/page-sizes.js';
import { keptBy, openSeat, ranksHere, threadsOf } from '../ranks/seat.js';
import { type DraftSetup, type OpenedDraft, openDraft } from './load-draft.js';
import { openHead } from './load-head.js';
import type { MemoryNeeds } from './memory-split.js';

/**
 * Least number of logits' rows in one pass: returning a prompt's logits must not go one row at a time if there are few
 * sequences.
 */
const ROWS_PER_PASS_MIN = 16;

/** Gathers an engine's settings before any memory is taken for it. */
async function prepare(
  kind: ExecutorKind,
  { enginePath, params, modelType, maxBeamWidth = 1, heartbeat, seat }: LoadRequest,
) {
  const engine = await engineToLoad(enginePath, params.panels);
  const { config, precision } = engine.manifest;
  checkKind(enginePath, engine, seat);
  const loadable = loadableEngine(engine);
  requireSupport(kind, loadable.plan);
  const { states = [] } = loadable.plan;
  const taken = kind.logsDrafts ? ('logged' as const) : ('notLogged' as const);
  const sizes = states.length === 0 ? engine.manifest : { ...engine.manifest, states: taken };
  const limits = resolveLimits(params, sizes, modelType, maxBeamWidth);
  const kvDtype = params.kvDtype ?? kind.kvDtypeFor(precision);
  const { maxNumTokens, maxSequences } = limits.microBatch;
  const withoutPool: Omit<ExecutorOptions, 'numBlocks'> = {
    threads: threadsOf(kind, params, seat),
    maxNumTokens,
    maxNumSequences: maxSequences + limits.padding.sequences,
    maxLogitRows: Math.max(maxSequences + limits.maxDraftRows, Math.min(ROWS_PER_PASS_MIN, maxNumTokens)),
    maxSeqLen: limits.maxSeqLen,
    tokensPerBlock: limits.tokensPerBlock,
    kvDtype,
    ...limits.window?.options,
    ...(params.instructionSet === undefined ? {} : { instructionSet: params.instructionSet }),
    pinThreads: params.pinThreads ?? 'auto',
    ...(params.computeWeight === undefined ? {} : { computeWeight: params.computeWeight }),
    ...(heartbeat === undefined ? {} : { heartbeat }),
  };
  const { expertFraction = 1 } = params;
  const ranks = ranksHere(seat);
  const measured = await Promise.all(
    ranks.map((own) =>
      kind.measure(loadable, {
        ...withoutPool,
        numBlocks: 1,
        ...(states.length > 0 && { numStateSlots: 1 }),
        ...own,
      }),
    ),
  );
  const fixed = measured.map((one) => one.fixed).reduce(addMemory);
  const [{ mostKvCache, experts = null }] = measured as [MeasuredMemory];
  if (experts !== null) checkExpertFraction(experts, expertFraction);
  const options = { ...withoutPool, ...(experts !== null && expertFraction < 1 && { expertFraction }) };
  const kept = keptBytes(
    ranks.map(({ seat }) => keptBy(loadable, seat)),
    limits,
    kvDtype,
  );
  const draft = await openDrafting(params, { kind, engine, limits, options, kvDtype });
  const { peftCacheManagerConfig: peft } = params;
  const adapterSizes = peft === undefined ? null : pageSizes(config, peft, kind.rankUnit);
  return {
    engine,
    config,
    limits,
    adapterSizes,
    /** Bytes that adapters may take on the host. */
    hostAdapterBytes: adapterSizes === null ? 0 : hostCacheBytes(peft!, adapterSizes),
    loadable,
    withoutPool: options,
    /** null: there are none, or the executor cannot read them from the disk. */
    experts,
    hasStates: states.length > 0,
    ...kept,
    maxBeamWidth,
    draft,
    draftBytesPerBlock: draft?.bytesPerBlock ?? 0,
    poolLimits: [
      { most: mostKvCache, bytesPerBlock: kept.bytesPerBlock },
      ...(draft === null ? [] : [{ most: draft.mostKvCache, bytesPerBlock: draft.bytesPerBlock }]),
    ],
    /** With all experts. */
    fixed: draft === null ? fixed : addMemory(fixed, draft.fixed),
  };
}

/** Bytes in all ranks of this machine: of a block, of a slot for states, and of the log of a sequence's draft. */
function keptBytes(kept: readonly ReturnType<typeof keptBy>[], limits: EngineLimits, kvDtype: KvDtype) {
  const sum = (bytesOf: (rank: ReturnType<typeof keptBy>) => number) =>
    kept.reduce((total, rank) => total + bytesOf(rank), 0);
  return {
    bytesPerBlock: sum(({ caches }) => kvBytesPerBlock(caches, limits.tokensPerBlock, kvDtype)),
    stateBytes: sum(({ states }) => stateBytesPerSlot(states)),
    logBytes: limits.maxDraftLen * sum(({ inputBytes }) => inputBytes),
  };
}

/** @throws EngineError for an engine of something else */
function checkKind(path: string, { manifest, plan }: Engine, seat: LoadRequest['seat']): void {
  if (manifest.config.encoder !== undefined)
    throw new EngineError(
      `${path}: this model is an encoder, which embeds or scores texts; it generates none.`,
    );
  if (seat !== undefined && plan.head !== undefined)
    throw new EngineError(
      `${path}: was built with its head that guesses tokens, which ranks do not run; build it without.`,
    );
}

/** The model's head, or its draft model; null: nothing draws drafts. */
async function openDrafting(
  { speculate, draftEnginePath, panels }: LoadRequest['params'],
  setup: Omit<DraftSetup, 'panels'>,
): Promise<OpenedDraft | null> {
  if (speculate === 'mtp') return openHead(setup);
  return draftEnginePath === undefined ? null : openDraft(draftEnginePath, { ...setup, panels });
}

/** Memory that an engine needs where engines share memory. Takes none. Throws like loadExecutor. */
export async function memoryNeeds(request: LoadRequest): Promise<MemoryNeeds> {
  const { params } = request;
  const { kind } = await likelyExecutor(params);
  const prepared = await prepare(kind, request);
  const { limits, bytesPerBlock, draftBytesPerBlock, hostAdapterBytes } = prepared;
  const fixed = withExperts(prepared.fixed, prepared.experts, params.expertFraction ?? 1);
  const unlimited = { bytes: Number.MAX_SAFE_INTEGER, from: 'no limit' };
  const { statesBytes, available } = roomForStates(prepared, params, unlimited);
  const numBlocks = kvBlocks(params, { limits, bytesPerBlock, draftBytesPerBlock, available });
  const poolBytes = numBlocks * (bytesPerBlock + draftBytesPerBlock) + statesBytes;
  const besides = (limits.padding.blocks + secondaryBlocks(params, bytesPerBlock)) * bytesPerBlock;
  const fraction = params.kvCacheConfig?.freeGpuMemoryFraction ?? DEFAULT_KV_FRACTION;
  return { fixed, mostBytes: Math.ceil(poolBytes / fraction) + besides + hostAdapterBytes };
}

/**
 * Opens an engine directory, sizes the KV cache by the memory that `memory` reports as left besides
 * everything else that is loaded, and starts the requested executor, or the best that runs here.
 */
export const loadExecutor = async (
  request: LoadRequest,
  memory: () => AvailableMemory = availableMemory,
): Promise<LoadedExecutor> => {
  const { started, fallback } = await startOnExecutor(request.params, (kind) =>
    startOn(kind, request, memory),
  );
  return { ...started, executorFallback: fallback };
};

async function startOn(
  kind: ExecutorKind,
  request: LoadRequest,
  memory: () => AvailableMemory,
): Promise<LoadedExecutor> {
  const prepared = await prepare(kind, request);
  const { engine, config, limits, loadable, withoutPool, draft, bytesPerBlock, draftBytesPerBlock } =
    prepared;
  const { adapterSizes: sizes } = prepared;
  const { params } = request;
  const device = (await kind.deviceMemory?.()) ?? null;
  const { available, slots, statesBytes, numBlocks } = shareOut(prepared, params, device, memory);
  const numSecondaryBlocks = secondaryBlocks(params, bytesPerBlock);
  const poolBytes =
    numBlocks * (bytesPerBlock + draftBytesPerBlock) +
    (limits.padding.blocks + numSecondaryBlocks) * bytesPerBlock;
  const left = Math.max(0, available.bytes - poolBytes - statesBytes);
  const adapters = sizes && adapterRoom(config, params.peftCacheManagerConfig!, sizes, left);
  const executor = await kind.open(loadable, {
    ...withoutPool,
    ...(request.seat === undefined ? {} : { seat: openSeat(request.seat) }),
    numBlocks: numBlocks + limits.padding.blocks,
    numSecondaryBlocks,
    ...(slots !== null && stateOptions(slots)),
    ...(adapters === null ? {} : slotOptions(adapters)),
  });
  const perLength = ropeDependsOnLength(config.rope)
    ? (length: number) => ropeFrequencies(config.rope, length)
    : null;
  return {
    executor,
    digest: engineDigest(engine, loadable.tensors),
    limits,
    rope: new RopeTable(ropeFrequencies(config.rope), perLength, limits.maxNumSequences),
    endTokenIds: config.eosTokenIds,
    padTokenId: config.padTokenId,
    ...(slots !== null && { states: slots }),
    ...(adapters === null ? {} : { adapters }),
    ...(draft === null ? {} : { draft: await draft.start(numBlocks) }),
  };
}

/** The memory of the cache, and what lies in it. @throws with the numbers where it has no room for a sequence, and what makes some */
function shareOut(
  prepared: Prepared,
  params: LoadRequest['params'],
  device: AvailableMemory | null,
  memory: () => AvailableMemory,
) {
  const { limits, bytesPerBlock, draftBytesPerBlock, hostAdapterBytes, fixed, experts } = prepared;
  const { expertFraction = 1 } = params;
  const all = device ?? memory();
  const at = (fraction: number) => {
    // The share of memory given to one of several models is of the system's memory, so it does not apply to a device.
    const given = device === null ? params.availableMemory : undefined;
    const free = given ?? afterLoading(all, withExperts(fixed, experts, fraction));
    const available = device === null ? besideAdapters(free, hostAdapterBytes) : free;
    const { slots, statesBytes, available: forBlocks } = roomForStates(prepared, params, available);
    const numBlocks = kvBlocks(params, { limits, bytesPerBlock, draftBytesPerBlock, available: forBlocks });
    return { available, slots, statesBytes, numBlocks };
  };
  try {
    return at(expertFraction);
  } catch (error) {
    if (experts === null || !(error instanceof RangeError)) throw error;
    const isGiven = device === null && params.availableMemory !== undefined;
    throw retell(error, withExpertHint(textOf(error), experts, expertFraction, isGiven ? null : at));
  }
}

type StateSlots = Required<LoadedExecutor>['states'];

function stateOptions({ numSlots, numSnapshots, draftRows }: StateSlots) {
  return { numStateSlots: numSlots + numSnapshots, numDraftSlots: numSlots, stateDraftRows: draftRows };
}

/**
 * Slots for the states of sequences and for snapshots of them, the bytes of all, and the memory left for blocks; slots null: the model
 * has no states. States lie in the pools of the model's own executor, never in those of a draft model.
 */
function roomForStates(
  { hasStates, stateBytes, logBytes, limits, maxBeamWidth, poolLimits }: Prepared,
  { kvCacheConfig = {} }: LoadRequest['params'],
  available: AvailableMemory,
): { slots: StateSlots | null; statesBytes: number; available: AvailableMemory } {
  const inPools = withinPools(available, poolLimits);
  if (!hasStates) return { slots: null, statesBytes: 0, available: inPools };
  const { freeGpuMemoryFraction = DEFAULT_KV_FRACTION, enableBlockReuse = false } = kvCacheConfig;
  const { stateFraction: fraction = DEFAULT_STATE_FRACTION } = kvCacheConfig;
  const { maxNumSequences, maxSeqLen, tokensPerBlock } = limits;
  const slots = stateSlots({
    bytesPerSlot: stateBytes,
    logBytes,
    availableBytes: Math.floor(freeGpuMemoryFraction * inPools.bytes),
    fraction,
    maxSequences: maxNumSequences * maxBeamWidth,
    maxBeamWidth,
    mostSnapshots: enableBlockReuse ? maxNumSequences * Math.ceil(maxSeqLen / tokensPerBlock) : 0,
  });
  const statesBytes = slots.numSlots * (stateBytes + logBytes) + slots.numSnapshots * stateBytes;
  const [own, ...others] = poolLimits;
  const left = [{ ...own!, most: poolBeside(own!.most, statesBytes) }, ...others];
  return {
    slots: { ...slots, draftRows: limits.maxDraftLen },
    statesBytes,
    available: withinPools(besideStates(available, statesBytes), left),
  };
}

const poolBeside = (most: MeasuredMemory['mostKvCache'], statesBytes: number) =>
  most && { ...most, bytes: Math.max(0, most.bytes - statesBytes) };

type Prepared = Awaited<ReturnType<typeof prepare>>;
