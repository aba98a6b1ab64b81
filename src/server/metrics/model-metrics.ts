import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { TokenTiming } from '../../../callbacks/token-request.js';
import type { ObservedRequest, RequestObserver } from '../request-observer.js';
import type { ModelFamilies, ModelLabels } from './families.js';

/** What a model's engine says of itself right now. */
export interface EngineGauges {
  running: number;
  waiting: number;
  maxBlocks: number;
  usedBlocks: number;
}

/** A model whose metrics are kept. */
export interface ObservedModel {
  name: string;
  maxSeqLen: number;
  /** Asked at each scrape. */
  gauges: () => EngineGauges;
  maxQueueSize?: number;
  tokensPerBlock?: number;
  secondaryBlocks?: number;
  kvDtype?: string;
}

/** What of an iteration's statistics is counted. */
export type IterationCounts = Pick<
  IterationStats,
  | 'iterationMs'
  | 'executorMs'
  | 'waitedMs'
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
  | 'reusedBlocks'
  | 'missedBlocks'
  | 'swappedOutBlocks'
  | 'swappedInBlocks'
  | 'secondaryUsedBlocks'
>;

/** Reasons that are there from the start, so that their rates are. */
const REASONS = ['stop', 'length', 'abort', 'error', 'timeout'];

/** Totals of the engine since it was started: what is counted is by how much they grew. */
const TOTALS = {
  preemptions: 'totalPauses',
  reusedBlocks: 'reusedBlocks',
  missedBlocks: 'missedBlocks',
  swappedOut: 'swappedOutBlocks',
  swappedIn: 'swappedInBlocks',
} as const;

/** The metrics of one model among those of all. */
export class ModelMetrics {
  readonly #families: ModelFamilies;
  readonly #labels: ModelLabels;
  readonly #model: ObservedModel;
  #totals = noTotals();
  #secondaryUsed = 0;
  #isReady = true;

  constructor(families: ModelFamilies, model: ObservedModel) {
    this.#families = families;
    this.#model = model;
    this.#labels = { model_name: model.name, engine: '0' };
    this.#begin();
  }

  /** Every series is there from the start, at zero: a rate needs a sample from before the first event. */
  #begin(): void {
    for (const family of Object.values(this.#families)) {
      if ('zero' in family) family.zero(this.#labels);
      else if (family !== this.#families.success && !('set' in family)) family.inc(this.#labels, 0);
    }
    for (const finished_reason of REASONS) {
      this.#families.success.inc({ ...this.#labels, finished_reason }, 0);
    }
    const { tokensPerBlock, secondaryBlocks = 0, kvDtype = '', gauges } = this.#model;
    if (tokensPerBlock === undefined) return;
    this.#families.cacheConfig.set(
      {
        ...this.#labels,
        block_size: String(tokensPerBlock),
        num_gpu_blocks: String(gauges().maxBlocks),
        num_cpu_blocks: String(secondaryBlocks),
        cache_dtype: kvDtype,
      },
      1,
    );
  }

  /** Called for each scrape. */
  collect(): void {
    const { running, waiting, maxBlocks, usedBlocks } = this.#model.gauges();
    const { maxQueueSize = 0, tokensPerBlock = 0, secondaryBlocks = 0 } = this.#model;
    const families = this.#families;
    const labels = this.#labels;
    const usage = maxBlocks === 0 ? 0 : usedBlocks / maxBlocks;
    families.running.set(labels, running);
    families.waiting.set(labels, waiting);
    families.cacheUsage.set(labels, usage);
    families.gpuCacheUsage.set(labels, usage);
    families.ready.set(labels, this.#isReady ? 1 : 0);
    families.queueLimit.set(labels, maxQueueSize);
    families.blockTokens.set(labels, tokensPerBlock);
    const states = {
      used: usedBlocks,
      free: maxBlocks - usedBlocks,
      secondary_used: this.#secondaryUsed,
      secondary_free: secondaryBlocks - this.#secondaryUsed,
    };
    for (const [state, count] of Object.entries(states)) families.blocks.set({ ...labels, state }, count);
  }

  iteration(stats: IterationCounts): void {
    const families = this.#families;
    const labels = this.#labels;
    families.drafts.inc(labels, stats.drafts);
    families.draftedTokens.inc(labels, stats.draftedTokens);
    families.acceptedTokens.inc(labels, stats.acceptedDraftTokens);
    families.prefixQueries.inc(labels, stats.queriedTokens);
    families.gpuPrefixQueries.inc(labels, stats.queriedTokens);
    families.prefixHits.inc(labels, stats.reusedTokens);
    families.gpuPrefixHits.inc(labels, stats.reusedTokens);
    families.iterationTokens.observe(labels, stats.contextTokens + stats.generatedTokens);
    families.iterations.inc(labels);
    families.iterationTime.observe(labels, stats.iterationMs / 1000);
    families.executorTime.inc(labels, stats.executorMs / 1000);
    families.waitedTime.inc(labels, stats.waitedMs / 1000);
    families.contextTokens.inc(labels, stats.contextTokens);
    families.batchRequests.observe(labels, stats.scheduledRequests);
    families.batchContexts.observe(labels, stats.contextRequests);
    for (const [family, total] of Object.entries(TOTALS) as [keyof typeof TOTALS, keyof IterationCounts][]) {
      const grown = stats[total] - this.#totals[family];
      if (grown > 0) families[family].inc(labels, grown);
      this.#totals[family] = stats[total];
    }
    this.#secondaryUsed = stats.secondaryUsedBlocks;
  }

  /** The engine died; another one is being started, or none is. */
  engineDown(): void {
    this.#isReady = false;
    this.#secondaryUsed = 0;
  }

  /** The engine died and runs again; its own totals begin anew. */
  engineRestarted(): void {
    this.#isReady = true;
    this.#families.restarts.inc(this.#labels);
    this.#totals = noTotals();
  }

  /** Follows a request that was just accepted. */
  observe({ promptTokens, maxTokens, isGuided, choices }: Omit<ObservedRequest, 'model'>): RequestObserver {
    const families = this.#families;
    const labels = this.#labels;
    const startMs = performance.now();
    let firstMs: number | null = null;
    let lastMs = startMs;
    let generated = 0;
    let ended = false;
    families.promptTokens.inc(labels, promptTokens);
    families.promptLength.observe(labels, promptTokens);
    families.maxTokens.observe(labels, maxTokens);
    families.maxTokensParam.observe(labels, maxTokens);
    if (choices !== undefined) families.choices.observe(labels, choices);
    if (isGuided) families.guided.inc(labels);
    return {
      onCachedTokens: (count) => families.cachedTokens.inc(labels, count),
      onTokens: (count) => {
        const nowMs = performance.now();
        generated += count;
        families.generatedTokens.inc(labels, count);
        if (firstMs === null) {
          firstMs = nowMs;
          families.firstToken.observe(labels, (nowMs - startMs) / 1000);
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
      onEnd: (reason, timing) => {
        if (ended) return;
        ended = true;
        if (timing) this.#observeTiming(timing);
        families.success.inc({ ...labels, finished_reason: reason });
        families.generatedLength.observe(labels, generated);
        families.latency.observe(labels, (performance.now() - startMs) / 1000);
        if (firstMs === null) return;
        families.decodeTime.observe(labels, (lastMs - firstMs) / 1000);
        if (generated > 1) families.perToken.observe(labels, (lastMs - firstMs) / 1000 / (generated - 1));
      },
    };
  }

  /** The engine's own times: nothing of the way to the client is in them. */
  #observeTiming({ firstScheduledMs, firstTokenMs, lastTokenMs }: TokenTiming): void {
    if (firstScheduledMs === null) return;
    this.#families.queueTime.observe(this.#labels, firstScheduledMs / 1000);
    if (firstTokenMs === null || lastTokenMs === null) return;
    this.#families.prefillTime.observe(this.#labels, (firstTokenMs - firstScheduledMs) / 1000);
    this.#families.inferenceTime.observe(this.#labels, (lastTokenMs - firstScheduledMs) / 1000);
  }
}

function noTotals(): Record<keyof typeof TOTALS, number> {
  return { preemptions: 0, reusedBlocks: 0, missedBlocks: 0, swappedOut: 0, swappedIn: 0 };
}
