import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { TokenTiming } from '../../../callbacks/token-request.js';
import type { EncoderBatch } from '../../../host/encoder-host.js';
import type { ModelState } from '../../serving/model-state.js';
import type { ObservedRequest, RequestObserver } from '../../serving/request-observer.js';
import type { EngineCounts, RequestCounts } from '../../serving/running-model.js';
import type { KvCacheFacts, ServedModel } from '../../serving/served-model.js';
import type { CacheLabels, ModelFamilies, ModelLabels } from './families/families.js';

/** A model whose metrics are kept. */
export type ObservedModel = Pick<ServedModel, 'id' | 'maxQueueSize' | 'processMemory'> & {
  statistics: { counts(): RequestCounts | EngineCounts; paused?(): number };
  kvCache?: Partial<KvCacheFacts>;
  state?: Pick<ModelState, 'ranks' | 'missing'>;
};

/** Statistics of an iteration that are counted. */
export type IterationCounts = Pick<
  IterationStats,
  | 'iterationMs'
  | 'executorMs'
  | 'waitedMs'
  | 'expertReadBytes'
  | 'scheduledRequests'
  | 'contextRequests'
  | 'contextTokens'
  | 'generatedTokens'
  | 'totalPauses'
  | 'queriedTokens'
  | 'reusedTokens'
  | 'drafts'
  | 'draftedTokens'
  | 'acceptedDraftTokens'
  | 'acceptedByPosition'
  | 'reusedBlocks'
  | 'missedBlocks'
  | 'swappedOutBlocks'
  | 'swappedInBlocks'
  | 'secondaryUsedBlocks'
  | 'states'
  | 'disk'
>;

/** Reasons whose series exist from the start, so that their rates do too. */
const REASONS = ['stop', 'length', 'abort', 'error', 'timeout'];

/** Totals of the engine since its start, counted by their growth. */
const TOTALS = {
  preemptions: 'totalPauses',
  reusedBlocks: 'reusedBlocks',
  missedBlocks: 'missedBlocks',
  swappedOut: 'swappedOutBlocks',
  swappedIn: 'swappedInBlocks',
  stateHits: 'stateHits',
  stateLosses: 'stateLosses',
  diskHits: 'diskHits',
  diskMisses: 'diskMisses',
  diskReadBytes: 'diskReadBytes',
  diskWritten: 'diskWritten',
  diskDamaged: 'diskDamaged',
  diskErrors: 'diskErrors',
} as const;

type Total = (typeof TOTALS)[keyof typeof TOTALS];

/** Counts of one step of an engine: an iteration, or an encoder's batch. */
interface StepCounts {
  stepMs: number;
  executorMs: number;
  tokens: number;
  contextTokens: number;
  requests: number;
  contexts: number;
}

/** Labels of blocks by their use. */
const BLOCK_STATES = ['used', 'free', 'secondary_used', 'secondary_free'] as const;

/** vLLM's reasons, states and sources: all of its series exist, also where this engine has no such thing. */
const WAIT_REASONS = ['capacity', 'deferred'] as const;
const SLEEP_STATES = ['awake', 'weights_offloaded', 'discard_all'] as const;
/** Blocks that were swapped out are brought back before they are read: all of them are read from one memory. */
const CACHED_SOURCE = 'device';
const PROMPT_SOURCES = ['local_compute', 'local_cache_hit', 'external_kv_transfer'] as const;

/** Follows a request of a model that is no longer served: its series have ended. */
export const UNCOUNTED: RequestObserver = {
  onCachedTokens: () => {},
  onTokens: () => {},
  onForgotten: () => {},
  onEnd: () => {},
};

/** Metrics of one model. */
export class ModelMetrics {
  readonly #families: ModelFamilies;
  readonly #labels: ModelLabels;
  readonly #model: ObservedModel;
  #totals = noTotals();
  #secondaryUsed = 0;
  /** As of the last iteration; null: the model has none, or has not run. */
  #states: IterationStats['states'] = null;
  /** The same; null: it keeps no blocks on a disk. */
  #disk: IterationStats['disk'] = null;
  /** Places in a draft that have a series. */
  #draftPositions = 0;
  #isReady = true;
  #isForgotten = false;
  readonly #reasons = new Set(REASONS);
  /** Labels of the model's cacheConfig; null: it has none. */
  #cacheLabels: CacheLabels | null = null;

  constructor(families: ModelFamilies, model: ObservedModel) {
    this.#families = families;
    this.#model = model;
    this.#labels = { model_name: model.id, engine: '0' };
    this.#begin();
  }

  /** Creates every series at zero: a rate needs a sample from before the first event. */
  #begin(): void {
    const { success: _, acceptedByPosition: __, promptSources, cachedSources, ...plain } = this.#families;
    for (const family of Object.values(plain)) {
      if ('zero' in family) family.zero(this.#labels);
      else if (!('set' in family)) family.inc(this.#labels, 0);
    }
    for (const source of PROMPT_SOURCES) promptSources.inc({ ...this.#labels, source }, 0);
    cachedSources.inc({ ...this.#labels, source: CACHED_SOURCE }, 0);
    for (const finished_reason of REASONS) {
      this.#families.success.inc({ ...this.#labels, finished_reason }, 0);
    }
    const { tokensPerBlock, secondaryBlocks = 0, kvDtype = '' } = this.#model.kvCache ?? {};
    if (tokensPerBlock === undefined) return;
    this.#cacheLabels = {
      ...this.#labels,
      block_size: String(tokensPerBlock),
      num_gpu_blocks: String(this.#counts().maxBlocks),
      num_cpu_blocks: String(secondaryBlocks),
      cache_dtype: kvDtype,
    };
    this.#families.cacheConfig.set(this.#cacheLabels, 1);
  }

  /** Ends the series of a model that is no longer served; requests of it that still run are not counted. */
  forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    const labels = this.#labels;
    const { success, blocks, cacheConfig, waitingByReason, sleepState, ...others } = this.#families;
    const { promptSources, cachedSources, acceptedByPosition, ...families } = others;
    for (const family of Object.values(families)) family.remove(labels);
    for (const finished_reason of this.#reasons) success.remove({ ...labels, finished_reason });
    for (const state of BLOCK_STATES) blocks.remove({ ...labels, state });
    for (const reason of WAIT_REASONS) waitingByReason.remove({ ...labels, reason });
    for (const sleep_state of SLEEP_STATES) sleepState.remove({ ...labels, sleep_state });
    for (let position = 0; position < this.#draftPositions; position++)
      acceptedByPosition.remove({ ...labels, position: String(position) });
    for (const source of PROMPT_SOURCES) promptSources.remove({ ...labels, source });
    cachedSources.remove({ ...labels, source: CACHED_SOURCE });
    if (this.#cacheLabels !== null) cacheConfig.remove(this.#cacheLabels);
  }

  /** Counts of the model; an encoder has no blocks. */
  #counts(): EngineCounts {
    return { maxBlocks: 0, usedBlocks: 0, ...this.#model.statistics.counts() };
  }

  /** Updates values that are read at each scrape. */
  collect(): void {
    if (this.#isForgotten) return;
    const { running, waiting, maxBlocks, usedBlocks } = this.#counts();
    const { maxQueueSize = 0 } = this.#model;
    const { tokensPerBlock = 0, secondaryBlocks = 0 } = this.#model.kvCache ?? {};
    const families = this.#families;
    const labels = this.#labels;
    const usage = maxBlocks === 0 ? 0 : usedBlocks / maxBlocks;
    families.running.set(labels, running);
    families.waiting.set(labels, waiting);
    // Nothing here waits for anything but room.
    for (const reason of WAIT_REASONS)
      families.waitingByReason.set({ ...labels, reason }, reason === 'capacity' ? waiting : 0);
    for (const sleep_state of SLEEP_STATES) {
      if (this.#isReady) families.sleepState.set({ ...labels, sleep_state }, sleep_state === 'awake' ? 1 : 0);
      else families.sleepState.remove({ ...labels, sleep_state });
    }
    families.cacheUsage.set(labels, usage);
    families.gpuCacheUsage.set(labels, usage);
    families.swapped.set(labels, this.#model.statistics.paused?.() ?? 0);
    families.cpuCacheUsage.set(labels, secondaryBlocks === 0 ? 0 : this.#secondaryUsed / secondaryBlocks);
    families.ready.set(labels, this.#isReady ? 1 : 0);
    families.queueLimit.set(labels, maxQueueSize);
    families.blockTokens.set(labels, tokensPerBlock);
    const { ranks = null, missing = null } = this.#model.state ?? {};
    if (ranks !== null) {
      families.ranks.set(labels, ranks.size);
      families.ranksMissing.set(labels, missing?.ranks.length ?? 0);
    }
    const states = this.#states;
    families.stateSlots.set(labels, states?.slots ?? 0);
    families.stateSlotsUsed.set(labels, states?.usedSlots ?? 0);
    families.stateSnapshots.set(labels, states?.snapshots ?? 0);
    families.stateSnapshotsKept.set(labels, states?.keptSnapshots ?? 0);
    families.diskFiles.set(labels, this.#disk?.files ?? 0);
    families.diskBytes.set(labels, this.#disk?.bytes ?? 0);
    families.diskMaxBytes.set(labels, this.#disk?.maxBytes ?? 0);
    const bytes = this.#model.processMemory?.() ?? null;
    if (bytes === null) families.processMemory.remove(labels);
    else families.processMemory.set(labels, bytes);
    const counts: Record<(typeof BLOCK_STATES)[number], number> = {
      used: usedBlocks,
      free: maxBlocks - usedBlocks,
      secondary_used: this.#secondaryUsed,
      secondary_free: secondaryBlocks - this.#secondaryUsed,
    };
    for (const state of BLOCK_STATES) families.blocks.set({ ...labels, state }, counts[state]);
  }

  /** Counts an iteration of the loop. */
  iteration(stats: IterationCounts): void {
    if (this.#isForgotten) return;
    const families = this.#families;
    const labels = this.#labels;
    this.#step({
      stepMs: stats.iterationMs,
      executorMs: stats.executorMs,
      tokens: stats.contextTokens + stats.generatedTokens,
      contextTokens: stats.contextTokens,
      requests: stats.scheduledRequests,
      contexts: stats.contextRequests,
    });
    families.drafts.inc(labels, stats.drafts);
    families.draftedTokens.inc(labels, stats.draftedTokens);
    families.acceptedTokens.inc(labels, stats.acceptedDraftTokens);
    this.#countPositions(stats.acceptedByPosition);
    families.prefixQueries.inc(labels, stats.queriedTokens);
    families.gpuPrefixQueries.inc(labels, stats.queriedTokens);
    families.prefixHits.inc(labels, stats.reusedTokens);
    families.gpuPrefixHits.inc(labels, stats.reusedTokens);
    families.waitedTime.inc(labels, stats.waitedMs / 1000);
    families.expertReadBytes.inc(labels, stats.expertReadBytes);
    const { states, disk } = stats;
    const totals = {
      ...stats,
      stateHits: states?.hits ?? 0,
      stateLosses: states?.lost ?? 0,
      diskHits: disk?.hits ?? 0,
      diskMisses: disk?.misses ?? 0,
      diskReadBytes: disk?.readBytes ?? 0,
      diskWritten: disk?.writtenBlocks ?? 0,
      diskDamaged: disk?.damaged ?? 0,
      diskErrors: disk?.errors ?? 0,
    };
    for (const [family, total] of Object.entries(TOTALS) as [keyof typeof TOTALS, Total][]) {
      const grown = totals[total] - this.#totals[family];
      if (grown > 0) families[family].inc(labels, grown);
      this.#totals[family] = totals[total];
    }
    this.#secondaryUsed = stats.secondaryUsedBlocks;
    this.#states = states;
    this.#disk = disk;
  }

  /** Counts accepted tokens by their place in the draft. A model has the places that its longest draft so far reached. */
  #countPositions(accepted: readonly number[]): void {
    for (const [position, count] of accepted.entries()) {
      this.#families.acceptedByPosition.inc({ ...this.#labels, position: String(position) }, count);
    }
    this.#draftPositions = Math.max(this.#draftPositions, accepted.length);
  }

  /** Counts a batch of an encoder: each text as a model that generates counts a prompt. */
  batch({ sequences, tokens, forwardMs }: EncoderBatch): void {
    if (this.#isForgotten) return;
    const times = { stepMs: forwardMs, executorMs: forwardMs };
    this.#step({ ...times, tokens, contextTokens: tokens, requests: sequences, contexts: sequences });
  }

  #step({ stepMs, executorMs, tokens, contextTokens, requests, contexts }: StepCounts): void {
    const families = this.#families;
    const labels = this.#labels;
    families.iterationTokens.observe(labels, tokens);
    families.iterations.inc(labels);
    families.iterationTime.observe(labels, stepMs / 1000);
    families.executorTime.inc(labels, executorMs / 1000);
    families.contextTokens.inc(labels, contextTokens);
    families.batchRequests.observe(labels, requests);
    families.batchContexts.observe(labels, contexts);
  }

  /** Notes that the engine died; another one may be starting. */
  engineDown(): void {
    this.#isReady = false;
    this.#secondaryUsed = 0;
  }

  /**
   * Notes that the engine runs again, with totals that begin at 0.
   * @param resumed requests of the one before that continue in it
   */
  engineRestarted(resumed: number): void {
    if (this.#isForgotten) return;
    this.#isReady = true;
    this.#families.restarts.inc(this.#labels);
    this.#families.resumed.inc(this.#labels, resumed);
    this.#totals = noTotals();
  }

  /** Follows a request that was just accepted. */
  observe({ promptTokens, maxTokens, isGuided, choices }: Omit<ObservedRequest, 'model'>): RequestObserver {
    if (this.#isForgotten) return UNCOUNTED;
    const families = this.#families;
    const labels = this.#labels;
    const startMs = performance.now();
    let firstMs: number | null = null;
    let lastMs = startMs;
    let generated = 0;
    let cached = 0;
    let ended = false;
    families.promptTokens.inc(labels, promptTokens);
    families.promptLength.observe(labels, promptTokens);
    families.maxTokens.observe(labels, maxTokens);
    families.maxTokensParam.observe(labels, maxTokens);
    if (choices !== undefined) families.choices.observe(labels, choices);
    if (isGuided) families.guided.inc(labels);
    return {
      onCachedTokens: (count) => {
        cached += count;
        if (!this.#isForgotten) families.cachedTokens.inc(labels, count);
      },
      onTokens: (count) => {
        if (this.#isForgotten) return;
        const nowMs = performance.now();
        generated += count;
        families.generatedTokens.inc(labels, count);
        if (firstMs === null) {
          firstMs = nowMs;
          families.firstToken.observe(labels, (nowMs - startMs) / 1000);
          this.#countSources(promptTokens, cached);
        } else {
          // Tokens that came together share the time since the last ones.
          const eachS = (nowMs - lastMs) / 1000 / count;
          for (let i = 0; i < count; i++) {
            families.interToken.observe(labels, eachS);
            families.perOutputToken.observe(labels, eachS);
          }
        }
        lastMs = nowMs;
      },
      onForgotten: (count) => {
        if (this.#isForgotten) return;
        generated += count;
        families.generatedTokens.inc(labels, count);
      },
      onEnd: (reason, timing) => {
        if (ended || this.#isForgotten) return;
        ended = true;
        if (timing) this.#observeTiming(timing);
        this.#reasons.add(reason);
        families.success.inc({ ...labels, finished_reason: reason });
        families.generatedLength.observe(labels, generated);
        families.latency.observe(labels, (performance.now() - startMs) / 1000);
        if (firstMs === null) return;
        families.decodeTime.observe(labels, (lastMs - firstMs) / 1000);
        if (generated > 1) families.perToken.observe(labels, (lastMs - firstMs) / 1000 / (generated - 1));
      },
    };
  }

  /** Counts where the keys and values of a prompt came from. */
  #countSources(promptTokens: number, cached: number): void {
    const { computedLength, promptSources, cachedSources } = this.#families;
    const computed = Math.max(0, promptTokens - cached);
    computedLength.observe(this.#labels, computed);
    promptSources.inc({ ...this.#labels, source: 'local_compute' }, computed);
    promptSources.inc({ ...this.#labels, source: 'local_cache_hit' }, cached);
    cachedSources.inc({ ...this.#labels, source: CACHED_SOURCE }, cached);
  }

  /** Counts the engine's own times, which leave out the way to the client. */
  #observeTiming({ firstScheduledMs, firstTokenMs, lastTokenMs }: TokenTiming): void {
    if (firstScheduledMs === null) return;
    this.#families.queueTime.observe(this.#labels, firstScheduledMs / 1000);
    if (firstTokenMs === null || lastTokenMs === null) return;
    this.#families.prefillTime.observe(this.#labels, (firstTokenMs - firstScheduledMs) / 1000);
    this.#families.inferenceTime.observe(this.#labels, (lastTokenMs - firstScheduledMs) / 1000);
  }
}

function noTotals(): Record<keyof typeof TOTALS, number> {
  return {
    preemptions: 0,
    reusedBlocks: 0,
    missedBlocks: 0,
    swappedOut: 0,
    swappedIn: 0,
    stateHits: 0,
    stateLosses: 0,
    ...{ diskHits: 0, diskMisses: 0, diskReadBytes: 0, diskWritten: 0, diskDamaged: 0, diskErrors: 0 },
  };
}
