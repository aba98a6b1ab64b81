import { OUTCOMES, type Outcome } from '../outcomes.js';
import type { RequestRecord } from '../records.js';
import { LatencyHistogram } from './latency-histogram.js';
import { isGood, type Slo } from './slo.js';

/** Summary of latencies in milliseconds; null where nothing was measured. */
export interface Latency {
  count: number;
  mean: number | null;
  deviation: number | null;
  min: number | null;
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
  p999: number | null;
  max: number | null;
}

export const LATENCIES = [
  'ttft',
  'ttftFromScheduled',
  'tpot',
  'itl',
  'e2e',
  'e2eFromScheduled',
  'queueing',
] as const;
export type LatencyName = (typeof LATENCIES)[number];

/** Counts and histograms of a run, filled as records come. */
export class RunMetrics {
  readonly outcomes = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>;
  readonly statuses = new Map<number, number>();
  readonly histograms = Object.fromEntries(LATENCIES.map((name) => [name, new LatencyHistogram()])) as Record<
    LatencyName,
    LatencyHistogram
  >;
  /**
   * Number of prompt tokens by the server's count; completionTokens: of answers, by pieces where the server did not
   * count.
   */
  promptTokens = 0;
  completionTokens = 0;
  cachedTokens = 0;
  pieces = 0;
  /** Number of answers without the server's count of tokens. */
  withoutUsage = 0;
  good = 0;
  retries = 0;
  firstSentMs = Number.POSITIVE_INFINITY;
  lastSentMs = Number.NEGATIVE_INFINITY;
  lastEndMs = Number.NEGATIVE_INFINITY;
  readonly #slo: Slo | null;

  constructor(slo: Slo | null) {
    this.#slo = slo;
  }

  get total(): number {
    return Object.values(this.outcomes).reduce((sum, count) => sum + count, 0);
  }

  get answered(): number {
    return this.outcomes.completed;
  }

  add(record: RequestRecord): void {
    this.outcomes[record.outcome]++;
    if (record.status !== 0) this.statuses.set(record.status, (this.statuses.get(record.status) ?? 0) + 1);
    this.retries += Math.max(0, record.attempts - 1);
    if (!Number.isNaN(record.sentMs)) {
      this.firstSentMs = Math.min(this.firstSentMs, record.sentMs);
      this.lastSentMs = Math.max(this.lastSentMs, record.sentMs);
      this.lastEndMs = Math.max(this.lastEndMs, record.endMs);
      // A repeated request was late because the server asked to wait.
      if (record.attempts === 1) this.histograms.queueing.record(record.sentMs - record.scheduledMs);
    }
    if (record.outcome === 'completed') this.#addAnswer(record);
  }

  addGaps(encoded: string): void {
    this.histograms.itl.add(encoded);
  }

  #addAnswer(record: RequestRecord): void {
    const { scheduledMs, sentMs, firstMs, endMs } = record;
    const { histograms } = this;
    const tokens = tokensOf(record);
    const tpotMs = tpotOf(record);
    histograms.e2e.record(endMs - sentMs);
    histograms.e2eFromScheduled.record(endMs - scheduledMs);
    // The first token of an answer that comes whole cannot be seen.
    const ttftMs = record.streamed ? firstMs - sentMs : Number.NaN;
    if (record.streamed) {
      histograms.ttft.record(ttftMs);
      histograms.ttftFromScheduled.record(firstMs - scheduledMs);
    }
    if (!Number.isNaN(tpotMs)) histograms.tpot.record(tpotMs);
    this.pieces += record.pieces;
    this.completionTokens += tokens;
    if (Number.isNaN(record.completionTokens)) this.withoutUsage++;
    if (!Number.isNaN(record.promptTokens)) this.promptTokens += record.promptTokens;
    if (!Number.isNaN(record.cachedTokens)) this.cachedTokens += record.cachedTokens;
    if (this.#slo !== null && isGood({ ttftMs, tpotMs, e2eMs: endMs - sentMs }, this.#slo)) this.good++;
  }
}

/** Number of tokens of an answer by the server's count, else one for each piece. */
function tokensOf({ completionTokens, pieces }: RequestRecord): number {
  return Number.isNaN(completionTokens) ? pieces : completionTokens;
}

/** Milliseconds per output token after the first; NaN for answers of one token and those not streamed. */
function tpotOf(record: RequestRecord): number {
  const tokens = tokensOf(record);
  return record.streamed && tokens > 1 ? (record.lastMs - record.firstMs) / (tokens - 1) : Number.NaN;
}

export function latencyOf(histogram: LatencyHistogram): Latency {
  const orNull = (value: number) => (Number.isFinite(value) ? Math.round(value * 1000) / 1000 : null);
  return {
    count: histogram.count,
    mean: orNull(histogram.meanMs),
    deviation: orNull(histogram.deviationMs),
    min: orNull(histogram.minMs),
    p50: orNull(histogram.quantile(0.5)),
    p90: orNull(histogram.quantile(0.9)),
    p95: orNull(histogram.quantile(0.95)),
    p99: orNull(histogram.quantile(0.99)),
    p999: orNull(histogram.quantile(0.999)),
    max: orNull(histogram.maxMs),
  };
}
