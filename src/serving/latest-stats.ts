import type { IterationStats, ModelType } from '../../callbacks/gpt-manager-options.js';
import type { EngineInfo, ExecutorMemory } from '../../callbacks/worker-messages.js';
import { batchManagerStatsJson, statsWithoutIterations } from '../../engine/loop/loop-statistics.js';

/**
 * The batch manager's statistics of the latest iteration, written when they are asked for. With nothing in flight,
 * counts of requests and of an iteration's work are 0, and blocks are those still held. Iteration counter and timestamp
 * stay those of the latest iteration, and show how old it is.
 */
export class LatestStats {
  readonly #modelType: ModelType;
  readonly #engine: EngineInfo;
  readonly #isIdle: () => boolean;
  #stats: IterationStats;
  #time = new Date();

  /** @param isIdle true where the engine has no request */
  constructor(modelType: ModelType, engine: EngineInfo, isIdle: () => boolean) {
    this.#modelType = modelType;
    this.#engine = engine;
    this.#isIdle = isIdle;
    this.#stats = beforeTheFirst(engine);
  }

  note(stats: IterationStats): void {
    // This is done at once: after the next request's first iteration the earlier idle state would be lost.
    this.#stats = this.#isIdle() ? atRest(stats) : stats;
    this.#time = new Date();
  }

  /** Notes that the engine died, and its memory with it. */
  noteLoss(): void {
    this.#stats = beforeTheFirst(this.#engine);
    this.#time = new Date();
  }

  /** JSON with the keys of the batch manager's own scheme: see batchManagerStatsJson. */
  json(): string {
    if (this.#isIdle()) this.#stats = atRest(this.#stats);
    return batchManagerStatsJson(this.#modelType, this.#stats, bytesOf(this.#engine.memory), this.#time);
  }
}

/** Statistics of an iteration as they are when nothing is in flight. */
function atRest(stats: IterationStats): IterationStats {
  return {
    ...stats,
    activeRequests: 0,
    newRequests: 0,
    newRequestsQueueMs: 0,
    queuedRequests: 0,
    scheduledRequests: 0,
    contextRequests: 0,
    generationRequests: 0,
    pausedRequests: 0,
    contextTokens: 0,
    generatedTokens: 0,
    expertReadBytes: 0,
    emptyGenerationSlots: 0,
    usedBlocks: stats.heldBlocks,
    freeBlocks: stats.maxBlocks - stats.heldBlocks,
  };
}

/** Statistics before the first iteration: all blocks are free, and nothing is counted. */
function beforeTheFirst({ numBlocks, tokensPerBlock, maxNumSequences }: EngineInfo): IterationStats {
  const blocks = { maxBlocks: numBlocks, freeBlocks: numBlocks, usedBlocks: 0, tokensPerBlock };
  return statsWithoutIterations(maxNumSequences, blocks);
}

/** Bytes of the model and of its draft model, if any. */
function bytesOf({ draft, ...own }: EngineInfo['memory']): number {
  const sum = (memory: ExecutorMemory) =>
    memory.weightBytes + memory.kvCacheBytes + memory.secondaryKvCacheBytes + memory.workspaceBytes;
  return sum(own) + (draft === null ? 0 : sum(draft));
}
