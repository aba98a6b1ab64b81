import type { EngineInfo } from '../callbacks/worker-messages.js';
import type { ExecutorMemory } from '../engine/executor.js';
import type { IterationStats, ModelType } from '../engine/gpt-manager-options.js';
import { batchManagerStatsJson, LoopStatistics, noCounts } from '../engine/loop-statistics.js';

/** The batch manager's statistics of the latest iteration, written when they are asked for. */
export class LatestStats {
  readonly #modelType: ModelType;
  readonly #engine: EngineInfo;
  #stats: IterationStats;
  #time = new Date();

  constructor(modelType: ModelType, engine: EngineInfo) {
    this.#modelType = modelType;
    this.#engine = engine;
    this.#stats = beforeTheFirst(engine);
  }

  note(stats: IterationStats): void {
    this.#stats = stats;
    this.#time = new Date();
  }

  /** The keys of the batch manager's own scheme: see batchManagerStatsJson. */
  json(): string {
    return batchManagerStatsJson(this.#modelType, this.#stats, bytesOf(this.#engine.memory), this.#time);
  }
}

/** All free, and nothing counted. */
function beforeTheFirst({ numBlocks, tokensPerBlock, maxNumSequences }: EngineInfo): IterationStats {
  const nothing = {
    allocTotalBlocks: 0,
    allocNewBlocks: 0,
    reusedBlocks: 0,
    missedBlocks: 0,
    cacheHitRate: 0,
  };
  const secondary = {
    secondaryMaxBlocks: 0,
    secondaryUsedBlocks: 0,
    swappedOutBlocks: 0,
    swappedInBlocks: 0,
  };
  const blocks = { maxBlocks: numBlocks, freeBlocks: numBlocks, usedBlocks: 0, tokensPerBlock };
  const cache = { ...blocks, ...nothing, ...secondary };
  const stats = new LoopStatistics(maxNumSequences).finishIteration(noCounts(), cache, 0, 0, 0);
  return { ...stats, iteration: 0 };
}

/** Of the model and, where there is one, of its draft model. */
function bytesOf({ draft, ...own }: EngineInfo['memory']): number {
  const sum = (memory: ExecutorMemory) =>
    memory.weightBytes + memory.kvCacheBytes + memory.secondaryKvCacheBytes + memory.workspaceBytes;
  return sum(own) + (draft === null ? 0 : sum(draft));
}
