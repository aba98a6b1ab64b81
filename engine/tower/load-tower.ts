import type { ExecutorChoice, InstructionSet, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { TowerInfo, TowerLimits, TowerPicture } from '../../callbacks/tower-messages.js';
import { pictureRows, sequenceLength } from '../../models/towers/picture-places.js';
import { pictureRowWidth, type TowerConfig } from '../../models/towers/tower-config.js';
import { openTowerEngine, type TowerEngine, towerDigest } from '../building/tower-engine.js';
import type { ExecutorOptions } from '../executors/executor.js';
import type { ExecutorKind } from '../executors/executor-kind.js';
import { likelyExecutor, requireSupport, startOnExecutor } from '../kinds/choose-executor.js';
import type { MemoryNeeds } from '../worker/memory-split.js';
import { TOWER_TOKENS_PER_BLOCK, TowerBatch, type TowerBatchLimits, towerBlocks } from './tower-batch.js';

/** Settings of a tower; one that is absent has the default. */
export interface TowerParams {
  /** See OptionalParams.executor. */
  executor?: ExecutorChoice | undefined;
  threads?: number | undefined;
  maxPatches?: number | undefined;
  maxPictures?: number | undefined;
  instructionSet?: InstructionSet | undefined;
  /** See ExecutorOptions.computeWeight. */
  computeWeight?: number | undefined;
  /** See OptionalParams. */
  pinThreads?: OptionalParams['pinThreads'] | undefined;
}

/** Patches of a batch: of a tower that sees pictures of any size, where one may have as many, and of others. */
const DEFAULT_PATCHES = { anySize: 8192, oneSize: 4096 } as const;
const DEFAULT_PICTURES = 16;

/** A tower ready to run. */
export interface LoadedTower extends Omit<TowerInfo, 'loadMs'> {
  /** Computes the rows of pictures, one picture after the other [rows x rowWidth]: a view that is valid until the next call. */
  see(pictures: readonly TowerPicture[]): Float32Array;
  close(): void;
}

/**
 * Opens the part of an engine that sees, and starts the requested executor, or the best that runs here.
 *
 * @throws EngineError if the engine has none; Error if there is not enough memory
 */
export async function loadTower(
  enginePath: string,
  params: TowerParams = {},
  heartbeat?: Int32Array,
): Promise<LoadedTower> {
  const engine = openTowerEngine(enginePath);
  const { config, loadable } = engine;
  const { limits, ofBatch } = towerLimits(config, params);
  const { started: executor, fallback } = await startOnExecutor(params, (kind) => {
    requireSupport(kind, loadable.plan);
    return kind.open(loadable, executorOptions(kind, engine, params, ofBatch, heartbeat));
  });
  const batch = new TowerBatch(config, ofBatch);
  return {
    digest: towerDigest(engine),
    executor: executor.name,
    executorFallback: fallback,
    instructionSet: executor.instructionSet,
    threads: executor.options.threads,
    config,
    rowWidth: pictureRowWidth(config),
    limits,
    memory: executor.memory(),
    see: (pictures) => {
      batch.pack(pictures);
      return executor.forward(batch);
    },
    close: () => executor.close(),
  };
}

/** Memory that a tower needs where models share memory: its pool is a part of its workspace. Takes none. */
export async function towerMemoryNeeds(enginePath: string, params: TowerParams): Promise<MemoryNeeds> {
  const { kind } = await likelyExecutor(params);
  const engine = openTowerEngine(enginePath);
  const { ofBatch } = towerLimits(engine.config, params);
  const options = executorOptions(kind, engine, params, ofBatch);
  const { fixed, kvCache } = await kind.measure(engine.loadable, options);
  return { fixed: { ...fixed, workspace: fixed.workspace + kvCache }, mostBytes: 0 };
}

/** Limits as callers know them, and those of the batch, which has rows of the tower's own too. */
export function towerLimits(
  config: TowerConfig,
  params: TowerParams,
): { limits: TowerLimits; ofBatch: TowerBatchLimits } {
  const { anyGrid, positionSide: side } = config;
  const ofOne = side ** 2;
  const usual =
    config.ropeTheta !== undefined ? DEFAULT_PATCHES.anySize : Math.max(ofOne, DEFAULT_PATCHES.oneSize);
  const { maxPatches: asked = usual, maxPictures = DEFAULT_PICTURES } = params;
  // Pictures of one size are seen whatever is asked for.
  const maxPatches = anyGrid ? asked : Math.max(asked, ofOne);
  const ownRows = sequenceLength(config, { rows: side, columns: side }) - ofOne;
  return {
    limits: { maxPatches, maxPictures },
    ofBatch: { maxRows: maxPatches + maxPictures * ownRows, maxPictures },
  };
}

function executorOptions(
  kind: ExecutorKind,
  { config, precision }: Pick<TowerEngine, 'config' | 'precision'>,
  params: TowerParams,
  ofBatch: TowerBatchLimits,
  heartbeat?: Int32Array,
): ExecutorOptions {
  const { maxRows, maxPictures } = ofBatch;
  return {
    threads: kind.threadsFor(params.threads),
    maxNumTokens: maxRows,
    maxNumSequences: maxPictures,
    maxSeqLen: maxRows,
    maxLogitRows: Math.max(maxPictures, Math.ceil(pictureRows(config, { rows: maxRows, columns: 1 }))),
    numBlocks: towerBlocks(ofBatch),
    tokensPerBlock: TOWER_TOKENS_PER_BLOCK,
    kvDtype: kind.kvDtypeFor(precision),
    ...(params.instructionSet === undefined ? {} : { instructionSet: params.instructionSet }),
    ...(params.computeWeight === undefined ? {} : { computeWeight: params.computeWeight }),
    pinThreads: params.pinThreads ?? 'auto',
    ...(heartbeat === undefined ? {} : { heartbeat }),
  };
}
