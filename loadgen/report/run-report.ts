import { type ArrivalOptions, offeredRate } from '../arrivals/arrivals.js';
import type { RunResult } from '../coordinator/load-run.js';
import { type Checked, findingsOf, type ProcessHealth, summarizeHealth } from '../metrics/checks.js';
import type { LatencyHistogram } from '../metrics/latency-histogram.js';
import { LATENCIES, latencyOf } from '../metrics/run-metrics.js';
import type { Slo } from '../metrics/slo.js';
import type { Dataset } from '../samples.js';
import type { RunReport } from './schema.js';

/** Facts about a run besides its result. */
export interface RunContext {
  label: string;
  load: number | null;
  repetition: number;
  arrivals: ArrivalOptions;
  seed: number;
  slo: Slo | null;
  dataset: Dataset;
  coordinator: ProcessHealth;
  server: RunReport['server'];
}

/** Points of a percentile curve: even in the logarithm of the share above. */
const CURVE = [0, ...Array.from({ length: 61 }, (_, i) => 1 - 10 ** (-i / 15)), 1];

export function runReport(result: RunResult, context: RunContext): RunReport {
  const { metrics } = result;
  const endMs = Number.isFinite(metrics.lastEndMs) ? metrics.lastEndMs : result.endMs;
  const seconds = Math.max(1e-3, (endMs - result.startMs) / 1000);
  const issued = issuedRate(result);
  const offered = offeredOf(result, context);
  const { tokens, outcomeOf } = lookAtRecords(result, context.dataset);
  return {
    label: context.label,
    load: context.load,
    repetition: context.repetition,
    arrivals: { ...context.arrivals },
    seed: context.seed,
    complete: result.cutOff === null,
    cutOff: result.cutOff,
    seconds,
    requests: requestsOf(result, outcomeOf),
    throughput: {
      offered,
      issued,
      requests: metrics.answered / seconds,
      outputTokens: metrics.completionTokens / seconds,
      totalTokens: (metrics.completionTokens + metrics.promptTokens) / seconds,
      steadyPieces: steadyPieces(result),
    },
    tokens: {
      prompt: metrics.promptTokens,
      completion: metrics.completionTokens,
      cached: metrics.cachedTokens,
      pieces: metrics.pieces,
      withoutUsage: metrics.withoutUsage,
      ...tokens,
    },
    latencies: Object.fromEntries(
      LATENCIES.map((name) => [name, latencyOf(metrics.histograms[name])]),
    ) as RunReport['latencies'],
    curves: Object.fromEntries(
      LATENCIES.filter((name) => metrics.histograms[name].count > 0).map((name) => [
        name,
        curveOf(metrics.histograms[name]),
      ]),
    ),
    goodput: goodputOf(metrics, context.slo, seconds),
    timeline: result.timeline.report(),
    client: clientOf(result, context, { offeredRate: offered, issuedRate: issued, seconds }),
    server: context.server,
  };
}

/** Numbers of requests by outcome, and the first messages of failed ones. */
function requestsOf(
  { metrics, planned, messages }: RunResult,
  outcomeOf: ReturnType<typeof lookAtRecords>['outcomeOf'],
): RunReport['requests'] {
  return {
    total: metrics.total,
    planned,
    outcomes: { ...metrics.outcomes },
    statuses: Object.fromEntries(metrics.statuses),
    retries: metrics.retries,
    messages: messages.slice(0, 50).map(({ request, message }) => ({
      request,
      outcome: outcomeOf.get(request) ?? 'cancelled',
      message,
    })),
  };
}

/** Health of the load generator, and whether it was the bottleneck. */
function clientOf(
  result: RunResult,
  { coordinator, arrivals }: RunContext,
  rates: Pick<Checked, 'offeredRate' | 'issuedRate' | 'seconds'>,
): RunReport['client'] {
  const { metrics, mostWaiting, dealt } = result;
  const workers = result.health.map(summarizeHealth);
  const findings = findingsOf({
    workers,
    coordinator,
    queueing: metrics.histograms.queueing,
    ttftP50Ms: metrics.histograms.ttft.quantile(0.5),
    ...rates,
    isClosedLoop: arrivals.kind === 'concurrency',
    mostWaiting,
    clientLimits: metrics.outcomes.client_limit,
  });
  const isBottleneck = findings.some((finding) => finding.isBottleneck);
  return { isBottleneck, findings, workers, coordinator, dealt, mostWaiting };
}

function curveOf(histogram: LatencyHistogram): [number, number][] {
  return CURVE.map((share) => [share, histogram.quantile(share)]);
}

function goodputOf(metrics: RunResult['metrics'], slo: Slo | null, seconds: number): RunReport['goodput'] {
  if (slo === null) return null;
  const limits = Object.fromEntries(Object.entries(slo).filter(([, limit]) => limit !== undefined));
  return {
    slo: limits,
    good: metrics.good,
    share: metrics.total === 0 ? 0 : metrics.good / metrics.total,
    requestsPerSecond: metrics.good / seconds,
  };
}

/** Requests sent a second, from the start of the run to the last one. */
function issuedRate({ metrics, startMs }: RunResult): number {
  const sent = metrics.histograms.queueing.count;
  if (sent === 0) return 0;
  return sent / Math.max(1e-3, (metrics.lastSentMs - startMs) / 1000);
}

/** Requests a second in the schedule up to the last request sent: by its own draws, not by their expectation. */
function offeredOf({ metrics, records, startMs }: RunResult, { arrivals }: RunContext): number | null {
  if (arrivals.kind === 'concurrency' || arrivals.kind === 'max') return null;
  let last = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (const { scheduledMs, turn } of records) {
    if (turn !== 0 || Number.isNaN(scheduledMs)) continue;
    last = Math.max(last, scheduledMs);
    count++;
  }
  if (count < 2 || metrics.total === 0) return offeredRate(arrivals);
  return count / Math.max(1e-3, (last - startMs) / 1000);
}

/** Pieces a second over the time in which requests were sent. */
function steadyPieces({ metrics, timeline, startMs }: RunResult): number {
  const seconds = (metrics.lastSentMs - startMs) / 1000;
  return seconds > 1 ? timeline.sumUntil('pieces', metrics.lastSentMs) / seconds : 0;
}

type Verified = Pick<RunReport['tokens'], 'verified' | 'fullLength'>;

/** Compares the lengths asked for with the server's counts. */
function lookAtRecords(
  { records, messages }: RunResult,
  dataset: Dataset,
): { tokens: Verified; outcomeOf: Map<number, string> } {
  const told = new Set(messages.map(({ request }) => request));
  const outcomeOf = new Map<number, string>();
  const verified = { requests: 0, exact: 0, sum: 0, max: 0 };
  const fullLength = { requests: 0, exact: 0 };
  for (const record of records) {
    if (told.has(record.request)) outcomeOf.set(record.request, record.outcome);
    if (record.outcome !== 'completed') continue;
    const turn = dataset.sample(record.sample).turns[record.turn]!;
    if (turn.promptTokens !== undefined && !Number.isNaN(record.promptTokens)) {
      const error = Math.abs(record.promptTokens - turn.promptTokens);
      verified.requests++;
      verified.sum += error;
      verified.max = Math.max(verified.max, error);
      if (error === 0) verified.exact++;
    }
    if (turn.maxTokens !== null && !Number.isNaN(record.completionTokens)) {
      fullLength.requests++;
      if (record.completionTokens === turn.maxTokens) fullLength.exact++;
    }
  }
  const { requests, exact, sum, max } = verified;
  return {
    outcomeOf,
    tokens: {
      verified: {
        requests,
        exact,
        meanError: requests === 0 ? null : sum / requests,
        maxError: requests === 0 ? null : max,
      },
      fullLength,
    },
  };
}
