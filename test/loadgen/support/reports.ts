import { type BenchReport, REPORT_SCHEMA, type RunReport } from '../../../loadgen/report/schema.js';

const latency = (p50: number, p99: number) => ({
  ...{ count: 1, mean: p50, deviation: 0, min: p50, p50, p90: p50, p95: p50, p99, p999: p99, max: p99 },
});
const health = {
  eventLoopUtilization: { mean: 0.1, max: 0.2 },
  ...{ loopDelayP99Ms: 1, loopDelayMaxMs: 2, gc: 0, cpu: { mean: 0.1, max: 0.2 }, connectionsOpened: 1 },
};

/** A run that is over, with these figures. */
export function run(label: string, requests: number, ttft: number, more: Partial<RunReport> = {}): RunReport {
  const outcomes = {
    ...{
      completed: 10,
      empty: 0,
      rate_limited: 0,
      http_error: 0,
      stream_error: 0,
      malformed: 0,
      truncated: 0,
    },
    ...{
      connect_failed: 0,
      connection_reset: 0,
      stalled: 0,
      timed_out: 0,
      client_limit: 0,
      cancelled: 0,
      not_sent: 0,
    },
  };
  const names = ['ttft', 'ttftFromScheduled', 'tpot', 'itl', 'e2e', 'e2eFromScheduled', 'queueing'] as const;
  return {
    ...{ label, load: 1, repetition: 0, arrivals: {}, seed: 0, complete: true, cutOff: null, seconds: 1 },
    requests: { total: 10, planned: 10, outcomes, statuses: {}, retries: 0, messages: [] },
    throughput: { offered: null, issued: 10, requests, outputTokens: 50, totalTokens: 60, steadyPieces: 50 },
    tokens: {
      ...{ prompt: 10, completion: 50, cached: 0, pieces: 50, withoutUsage: 0 },
      verified: { requests: 0, exact: 0, meanError: null, maxError: null },
      fullLength: { requests: 0, exact: 0 },
    },
    latencies: Object.fromEntries(
      names.map((name) => [name, latency(ttft, 2 * ttft)]),
    ) as RunReport['latencies'],
    curves: {},
    goodput: null,
    timeline: { binMs: 250, sent: [1], completed: [1], failed: [0], pieces: [5], inFlight: [0] },
    client: {
      isBottleneck: false,
      findings: [],
      workers: [health],
      coordinator: health,
      dealt: [10],
      mostWaiting: 0,
    },
    server: null,
    ...more,
  };
}

export const report = (...runs: RunReport[]): BenchReport => ({
  ...{ schema: REPORT_SCHEMA, skein: '0', startedAt: '2026-01-01T00:00:00Z', complete: true },
  target: { url: 'http://x', backend: 'chat', model: '</script><b>', streamed: true },
  machine: { cpu: 'c', cores: 1, memoryGiB: 1, features: [], node: 'v20', os: 'linux' },
  ...{ options: {}, data: { kind: 'random' }, warmup: { requests: 0, completed: 0 }, sweep: null, runs },
  placement: { isOn: false, message: '', coordinator: null, workers: [null] },
});
