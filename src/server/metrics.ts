import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { TokenTiming } from '../../callbacks/token-request.js';
import type { IterationStats } from '../../engine/gpt-manager-options.js';
import type { ObservedRequest, RequestObserver } from './request-observer.js';

/** Buckets of vLLM's metrics, in seconds, so that dashboards made for it fit. */
const FIRST_TOKEN_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
  2560,
];
const TOKEN_BUCKETS = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
];
const LATENCY_BUCKETS = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
];
const HTTP_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];
const ITERATION_TOKEN_BUCKETS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/** 1, 2, 5, 10, ... up to the longest sequence. */
function tokenCountBuckets(most: number): number[] {
  const buckets: number[] = [];
  for (let magnitude = 1; magnitude <= most; magnitude *= 10) {
    for (const step of [1, 2, 5]) if (step * magnitude <= most) buckets.push(step * magnitude);
  }
  return buckets;
}

/** What the engine's statistics say right now. */
export interface EngineGauges {
  running: number;
  waiting: number;
  maxBlocks: number;
  usedBlocks: number;
}

/** What of an iteration's statistics is counted. */
export type IterationCounts = Pick<
  IterationStats,
  | 'contextTokens'
  | 'generatedTokens'
  | 'totalPauses'
  | 'queriedTokens'
  | 'reusedTokens'
  | 'drafts'
  | 'draftedTokens'
  | 'acceptedDraftTokens'
>;

export interface HttpExchange {
  handler: string;
  method: string;
  status: number;
  durationMs: number;
}

const LABELS = ['model_name', 'engine'] as const;

/** Prometheus metrics: vLLM's names, so that its dashboards work unchanged, and those of HTTP. */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #labels: { model_name: string; engine: string };
  readonly #maxSeqLen: number;
  readonly #firstToken = this.#seconds(
    'time_to_first_token',
    'Arrival to the first token',
    FIRST_TOKEN_BUCKETS,
  );
  readonly #interToken = this.#seconds(
    'inter_token_latency',
    'Between two tokens of a request',
    TOKEN_BUCKETS,
  );
  readonly #perToken = this.#seconds(
    'request_time_per_output_token',
    'Mean time of a token after the first, per request',
    TOKEN_BUCKETS,
  );
  readonly #latency = this.#seconds('e2e_request_latency', 'Arrival to the last token', LATENCY_BUCKETS);
  readonly #decodeTime = this.#seconds('request_decode_time', 'First token to the last', LATENCY_BUCKETS);
  readonly #queueTime = this.#seconds(
    'request_queue_time',
    'Arrival to the first scheduling',
    LATENCY_BUCKETS,
  );
  readonly #prefillTime = this.#seconds(
    'request_prefill_time',
    'First scheduling to the first token',
    LATENCY_BUCKETS,
  );
  readonly #inferenceTime = this.#seconds(
    'request_inference_time',
    'First scheduling to the last token',
    LATENCY_BUCKETS,
  );
  readonly #promptTokens = this.#counter('prompt_tokens_total', 'Prompt tokens of accepted requests');
  readonly #cachedTokens = this.#counter(
    'prompt_tokens_cached_total',
    'Prompt tokens found in the cache when their request began',
  );
  readonly #generatedTokens = this.#counter('generation_tokens_total', 'Tokens generated');
  readonly #preemptions = this.#counter('num_preemptions_total', 'Times that a request was paused');
  readonly #prefixQueries = this.#counter(
    'prefix_cache_queries_total',
    'Prompt tokens looked for in the prefix cache',
  );
  readonly #prefixHits = this.#counter('prefix_cache_hits_total', 'Prompt tokens found in the prefix cache');
  readonly #drafts = this.#counter(
    'spec_decode_num_drafts_total',
    'Drafts verified, one a request and iteration',
  );
  readonly #draftedTokens = this.#counter('spec_decode_num_draft_tokens_total', 'Tokens of drafts verified');
  readonly #acceptedTokens = this.#counter(
    'spec_decode_num_accepted_tokens_total',
    'Tokens of drafts accepted',
  );
  readonly #success = new Counter({
    name: 'vllm:request_success_total',
    help: 'Requests that ended, by reason',
    labelNames: [...LABELS, 'finished_reason'] as const,
    registers: [this.#registry],
  });
  readonly #httpRequests = new Counter({
    name: 'http_requests_total',
    help: 'HTTP requests',
    labelNames: ['handler', 'method', 'status'] as const,
    registers: [this.#registry],
  });
  readonly #httpDuration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'HTTP requests to their last byte',
    labelNames: ['handler', 'method'] as const,
    buckets: HTTP_BUCKETS,
    registers: [this.#registry],
  });
  readonly #engineRestarts = new Counter({
    name: 'skein:engine_restarts_total',
    help: 'Times that the engine was started again after it had died',
    labelNames: LABELS,
    registers: [this.#registry],
  });
  #pauses = 0;
  readonly #promptLength;
  readonly #generatedLength;
  readonly #maxTokens;
  readonly #iterationTokens;

  /** @param gauges asked at each scrape. */
  constructor(options: { modelName: string; maxSeqLen: number; gauges: () => EngineGauges }) {
    this.#labels = { model_name: options.modelName, engine: '0' };
    this.#maxSeqLen = options.maxSeqLen;
    this.#promptLength = this.#lengths('request_prompt_tokens', 'Prompt tokens per request');
    this.#generatedLength = this.#lengths('request_generation_tokens', 'Tokens generated per request');
    this.#maxTokens = this.#lengths('request_max_num_generation_tokens', 'Tokens asked for per request');
    this.#iterationTokens = this.#histogram('iteration_tokens_total', 'Tokens per iteration', [
      ...ITERATION_TOKEN_BUCKETS,
    ]);
    this.#engineRestarts.inc(this.#labels, 0);
    const { gauges } = options;
    this.#gauge('num_requests_running', 'Requests in the batch', () => gauges().running);
    this.#gauge('num_requests_waiting', 'Requests that wait for a place in it', () => gauges().waiting);
    this.#gauge('kv_cache_usage_perc', 'Share of KV cache blocks in use, 0 to 1', () => {
      const { maxBlocks, usedBlocks } = gauges();
      return maxBlocks === 0 ? 0 : usedBlocks / maxBlocks;
    });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  httpRequest({ handler, method, status, durationMs }: HttpExchange): void {
    this.#httpRequests.inc({ handler, method, status: String(status) });
    this.#httpDuration.observe({ handler, method }, durationMs / 1000);
  }

  iteration({
    contextTokens,
    generatedTokens,
    totalPauses,
    queriedTokens,
    reusedTokens,
    drafts,
    draftedTokens,
    acceptedDraftTokens,
  }: IterationCounts): void {
    this.#drafts.inc(this.#labels, drafts);
    this.#draftedTokens.inc(this.#labels, draftedTokens);
    this.#acceptedTokens.inc(this.#labels, acceptedDraftTokens);
    this.#prefixQueries.inc(this.#labels, queriedTokens);
    this.#prefixHits.inc(this.#labels, reusedTokens);
    this.#iterationTokens.observe(this.#labels, contextTokens + generatedTokens);
    if (totalPauses > this.#pauses) this.#preemptions.inc(this.#labels, totalPauses - this.#pauses);
    this.#pauses = totalPauses;
  }

  /** The engine died and runs again; its own totals begin anew. */
  engineRestarted(): void {
    this.#engineRestarts.inc(this.#labels);
    this.#pauses = 0;
  }

  /** Follows a request that was just accepted. */
  observe({ promptTokens, maxTokens }: ObservedRequest): RequestObserver {
    const startMs = performance.now();
    let firstMs: number | null = null;
    let lastMs = startMs;
    let generated = 0;
    let ended = false;
    this.#promptTokens.inc(this.#labels, promptTokens);
    this.#promptLength.observe(this.#labels, promptTokens);
    this.#maxTokens.observe(this.#labels, maxTokens);
    return {
      onCachedTokens: (count) => this.#cachedTokens.inc(this.#labels, count),
      onTokens: (count) => {
        const nowMs = performance.now();
        generated += count;
        this.#generatedTokens.inc(this.#labels, count);
        if (firstMs === null) {
          firstMs = nowMs;
          this.#firstToken.observe(this.#labels, (nowMs - startMs) / 1000);
        } else {
          // Tokens that came together share the time since the last ones.
          const eachS = (nowMs - lastMs) / 1000 / count;
          for (let i = 0; i < count; i++) this.#interToken.observe(this.#labels, eachS);
        }
        lastMs = nowMs;
      },
      onEnd: (reason, timing) => {
        if (ended) return;
        ended = true;
        if (timing) this.#observeTiming(timing);
        this.#success.inc({ ...this.#labels, finished_reason: reason });
        this.#generatedLength.observe(this.#labels, generated);
        this.#latency.observe(this.#labels, (performance.now() - startMs) / 1000);
        if (firstMs === null) return;
        this.#decodeTime.observe(this.#labels, (lastMs - firstMs) / 1000);
        if (generated > 1) this.#perToken.observe(this.#labels, (lastMs - firstMs) / 1000 / (generated - 1));
      },
    };
  }

  /** The engine's own times: nothing of the way to the client is in them. */
  #observeTiming({ firstScheduledMs, firstTokenMs, lastTokenMs }: TokenTiming): void {
    if (firstScheduledMs === null) return;
    this.#queueTime.observe(this.#labels, firstScheduledMs / 1000);
    if (firstTokenMs === null || lastTokenMs === null) return;
    this.#prefillTime.observe(this.#labels, (firstTokenMs - firstScheduledMs) / 1000);
    this.#inferenceTime.observe(this.#labels, (lastTokenMs - firstScheduledMs) / 1000);
  }

  #seconds(name: string, help: string, buckets: number[]) {
    return this.#histogram(`${name}_seconds`, `${help}, in seconds`, buckets);
  }

  #lengths(name: string, help: string) {
    return this.#histogram(name, help, tokenCountBuckets(this.#maxSeqLen));
  }

  #histogram(name: string, help: string, buckets: number[]) {
    return new Histogram({
      name: `vllm:${name}`,
      help,
      labelNames: LABELS,
      buckets,
      registers: [this.#registry],
    });
  }

  #counter(name: string, help: string) {
    return new Counter({ name: `vllm:${name}`, help, labelNames: LABELS, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, read: () => number): void {
    const labels = this.#labels;
    new Gauge({
      name: `vllm:${name}`,
      help,
      labelNames: LABELS,
      registers: [this.#registry],
      collect() {
        this.set(labels, read());
      },
    });
  }
}
