import type { IterationStats, ModelType, StatsFormat } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorMemory, TurnChanges } from '../../callbacks/worker-messages.js';
import type { KvCacheStats } from '../../kvcache/kv-cache-manager.js';
import type { ResponseWriter } from '../intake/response-writer.js';
import type { LlmRequest } from '../request/llm-request.js';
import type { FlightRecorder } from './flight-recorder.js';
import type { Chunks, Iteration } from './iteration.js';
import { iterationStatsJson } from './iteration-stats-json.js';
import type { LoopEnvironment } from './loop-options.js';
import { batchManagerStatsJson, LoopStatistics } from './loop-statistics.js';

/** Reports the results of an iteration, its responses and its statistics, in one call. */
export class IterationReporter {
  readonly #world: LoopEnvironment;
  readonly #responses: ResponseWriter;
  readonly #format: { modelType: ModelType; statsFormat: StatsFormat };
  readonly #statistics: LoopStatistics;
  readonly #recorder: FlightRecorder;
  #reportedMs = Number.NEGATIVE_INFINITY;
  #iterationMs = 0;
  #waitedMs = 0;
  #expertReadBytes = 0;

  constructor(
    world: LoopEnvironment,
    responses: ResponseWriter,
    format: { modelType: ModelType; statsFormat: StatsFormat },
    maxNumSequences: number,
    recorder: FlightRecorder,
  ) {
    this.#world = world;
    this.#responses = responses;
    this.#format = format;
    this.#statistics = new LoopStatistics(maxNumSequences);
    this.#recorder = recorder;
  }

  /** Number of iterations reported so far. */
  get iteration(): number {
    return this.#statistics.iteration;
  }

  /** Milliseconds that the latest reported iteration took. */
  get iterationMs(): number {
    return this.#iterationMs;
  }

  /**
   * `iteration`: the one that has ended; null if none has, though there may be responses. `blocks`: statistics of the
   * KV cache before the ended requests gave back their blocks. Returns false if there was nothing to report.
   */
  report(iteration: Iteration | null, blocks: KvCacheStats, freePlaces: number): boolean {
    const { callbacks, kvCache } = this.#world;
    const stats =
      iteration !== null && iteration.counts.activeRequests > 0 ? this.#finish(iteration, blocks) : null;
    if (stats === null && this.#responses.count === 0) return false;
    const json = stats !== null && callbacks.wantsStatsJson ? this.#statsJson(stats, blocks) : null;
    const kvEvents = kvCache.drainEvents();
    const report = { responses: this.#responses, stats, json, freePlaces };
    callbacks.endIteration(kvEvents.length > 0 ? { ...report, kvEvents } : report);
    this.#responses.clear();
    return true;
  }

  /** Reports which requests begin and which are paused, before the iteration in which they do: it may take long. */
  reportTurns(chunks: Chunks, paused: readonly LlmRequest[]): void {
    const turns = takeTurns(chunks, paused);
    if (turns !== null) this.#world.callbacks.noteTurns?.(turns);
  }

  /** Reports events of cached blocks between two iterations, in case no iteration follows soon. */
  reportEvents(freePlaces: number): void {
    const kvEvents = this.#world.kvCache.drainEvents();
    if (kvEvents.length === 0) return;
    const nothing = { responses: this.#responses, stats: null, json: null };
    this.#world.callbacks.endIteration({ ...nothing, freePlaces, kvEvents });
    this.#responses.clear();
  }

  /** With overlap each iteration counts from the report of the one before, so that their times add up to all time. */
  #finish({ number, counts, startMs, microBatchId }: Iteration, blocks: KvCacheStats): IterationStats {
    const { kvCache, clock, executor } = this.#world;
    const nowMs = clock();
    const waitedMs = executor.waitedMs?.() ?? 0;
    counts.waitedMs = waitedMs - this.#waitedMs;
    this.#waitedMs = waitedMs;
    const readBytes = this.#world.expertReadBytes?.() ?? 0;
    counts.expertReadBytes = readBytes - this.#expertReadBytes;
    this.#expertReadBytes = readBytes;
    this.#iterationMs = nowMs - Math.max(startMs, this.#reportedMs);
    this.#reportedMs = nowMs;
    this.#recorder.endIteration(number, counts, this.#iterationMs, nowMs);
    const { usedBlocks } = kvCache.stats();
    return this.#statistics.finishIteration(counts, blocks, usedBlocks, this.#iterationMs, microBatchId);
  }

  #memoryBytes(): number {
    const { executor, draftMemory } = this.#world;
    return bytesOf(executor.memory()) + (draftMemory === undefined ? 0 : bytesOf(draftMemory));
  }

  #statsJson(stats: IterationStats, blocks: KvCacheStats): string {
    const { modelType, statsFormat } = this.#format;
    const now = new Date();
    return statsFormat === 'IterationStats'
      ? iterationStatsJson(modelType, stats, blocks, now)
      : batchManagerStatsJson(modelType, stats, this.#memoryBytes(), now);
  }
}

function bytesOf(memory: ExecutorMemory): number {
  return memory.weightBytes + memory.kvCacheBytes + memory.secondaryKvCacheBytes + memory.workspaceBytes;
}

/**
 * Who waits and who runs, as of the iteration that is about to start: a request waits until it runs for the first time, and while it is paused.
 *
 *   waits --first chunk--> has begun --pause--> waits --resume--> has begun
 *
 * @returns the changes, each once; null: there are none
 */
function takeTurns(chunks: Chunks, paused: readonly LlmRequest[]): TurnChanges | null {
  const began = chunks.filter(({ request }) => request.isWaiting).map(({ request }) => request);
  const again = paused.filter((request) => !request.isWaiting);
  if (began.length + again.length === 0) return null;
  for (const request of began) request.isWaiting = false;
  for (const request of again) request.isWaiting = true;
  const idsOf = (requests: readonly LlmRequest[]) => requests.map(({ requestId }) => requestId);
  return { began: idsOf(began), paused: idsOf(again) };
}
