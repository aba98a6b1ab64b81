import { option, says } from '../../base/named-text.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { kvBytesPerBlock, stateBytesPerSlot } from '../../kvcache/kv-cache-size.js';
import { ropeDependsOnLength, ropeFrequencies } from '../../network/rope.js';
import { stateInputBytes } from '../../network/state-inputs.js';
import { RopeTable } from '../batch/rope-table.js';
import { type Engine, EngineError, loadableEngine } from '../building/engine.js';
import { engineToLoad } from '../building/engine-to-load.js';
import { weightBytesOf } from '../directory/engine-directory.js';
import type { ExecutorOptions } from '../executors/executor.js';
import type { ExecutorKind, MeasuredMemory } from '../executors/executor-kind.js';
import type { LoadedDraft } from '../executors/loaded-executor.js';
import type { FixedMemory } from '../executors/memory-budget.js';
import { requireSupport } from '../kinds/choose-executor.js';
import type { EngineLimits } from '../options/engine-limits.js';
import { checkSameVocabulary } from '../speculation/same-vocabulary.js';

/**
 * Most rows of one round of the draft model. Sequences that it has not read yet are read in parts of this size, so that
 * others wait for only one part.
 */
const MAX_ROUND_ROWS = 512;

/** A draft model whose memory is known and not yet taken. */
export interface OpenedDraft {
  fixed: FixedMemory;
  bytesPerBlock: number;
  mostKvCache: MeasuredMemory['mostKvCache'];
  /** Takes the memory: as many blocks as the model itself has. */
  start(numBlocks: number): Promise<LoadedDraft>;
}

export interface DraftSetup {
  /** Kind of executor for both models. */
  kind: ExecutorKind;
  /** The engine that it drafts for. */
  engine: Engine;
  limits: EngineLimits;
  /** Options of the engine's executor. */
  options: Omit<ExecutorOptions, 'numBlocks'>;
  kvDtype: KvDtype;
  /** See OptionalParams. */
  panels: boolean | undefined;
}

/**
 * Opens the engine of a draft model. The draft model attends to all tokens of a sequence, so one made for a window drafts
 * only for sequences that fit into it.
 * @throws EngineError if it has another vocabulary, or layers whose states the executor cannot take back; ExecutorUnavailableError if the executor cannot run it.
 */
export async function openDraft(
  path: string,
  { kind, engine, limits, options, kvDtype, panels }: DraftSetup,
): Promise<OpenedDraft> {
  const draft = await engineToLoad(path, panels);
  const { plan, manifest } = draft;
  if (plan.states !== undefined && !kind.logsDrafts)
    throw new EngineError(
      says`${option('draftEnginePath')} ${path} cannot draft: its layers keep a state of each sequence, which the ${kind.name} executor cannot take back where a draft is rejected; name a model that attends in all layers, or use the native executor.`,
    );
  requireSupport(kind, plan);
  await checkSameVocabulary(engine, draft);
  const { config } = manifest;
  const roundRows = rowsOfRound(limits);
  const sizes: Omit<ExecutorOptions, 'numBlocks'> = {
    ...draftSizes({ limits, options, kvDtype }, draft),
    ...(plan.states !== undefined && {
      numStateSlots: roundRows,
      numDraftSlots: roundRows,
      stateDraftRows: limits.maxDraftLen,
    }),
  };
  const loadable = loadableEngine(draft);
  const { fixed, mostKvCache } = await kind.measure(loadable, { ...sizes, numBlocks: 1 });
  const perLength = ropeDependsOnLength(config.rope)
    ? (length: number) => ropeFrequencies(config.rope, length)
    : null;
  const statesBytes =
    roundRows * (stateBytesPerSlot(plan.states ?? []) + limits.maxDraftLen * stateInputBytes(plan));
  return {
    fixed: { ...fixed, workspace: fixed.workspace + statesBytes },
    mostKvCache,
    bytesPerBlock: kvBytesPerBlock(plan.caches, sizes.tokensPerBlock, kvDtype),
    start: async (numBlocks) => ({
      executor: await kind.open(loadable, {
        ...sizes,
        maxSeqLen: Math.min(sizes.maxSeqLen, numBlocks * sizes.tokensPerBlock),
        numBlocks,
      }),
      rope: new RopeTable(ropeFrequencies(config.rope), perLength, limits.maxNumSequences),
      costShare: weightBytesOf(manifest) / weightBytesOf(engine.manifest),
    }),
  };
}

/** A round draws one token for each sequence. */
const rowsOfRound = ({ maxDraftRows, microBatch }: EngineLimits) =>
  Math.min(maxDraftRows, microBatch.maxSequences);

/** Sizes of an executor that drafts, on the threads of the engine's. */
export function draftSizes(
  { limits, options, kvDtype }: Pick<DraftSetup, 'limits' | 'options' | 'kvDtype'>,
  { manifest }: Engine,
): Omit<ExecutorOptions, 'numBlocks'> {
  const { threads, tokensPerBlock, instructionSet, computeWeight, pinThreads, heartbeat } = options;
  const { maxSeqLen } = limits;
  const { maxNumTokens } = limits.microBatch;
  const roundRows = rowsOfRound(limits);
  return {
    threads,
    tokensPerBlock,
    kvDtype,
    maxNumTokens: Math.min(maxNumTokens, Math.max(MAX_ROUND_ROWS, limits.maxDraftRows)),
    maxNumSequences: roundRows,
    maxLogitRows: roundRows,
    maxSeqLen: Math.min(maxSeqLen, manifest.maxSeqLen, manifest.config.slidingWindow ?? maxSeqLen),
    ...(instructionSet === undefined ? {} : { instructionSet }),
    ...(pinThreads === undefined ? {} : { pinThreads }),
    ...(computeWeight === undefined ? {} : { computeWeight }),
    ...(heartbeat === undefined ? {} : { heartbeat }),
  };
}
