import { describe, expect, it } from 'vitest';
import { RunMetrics } from '../../../tools/loadgen/metrics/run-metrics.js';
import { isGood, SLO_PRESETS } from '../../../tools/loadgen/metrics/slo.js';
import { RecordList, type RequestRecord } from '../../../tools/loadgen/records.js';
import {
  compareReports,
  comparisonText,
  readReport,
  welchHalf,
} from '../../../tools/loadgen/report/compare.js';
import { CSV_HEAD, csvLines } from '../../../tools/loadgen/report/csv.js';
import { htmlReport } from '../../../tools/loadgen/report/html.js';
import { sparkline } from '../../../tools/loadgen/report/live.js';
import { type BenchReport, REPORT_SCHEMA, type RunReport } from '../../../tools/loadgen/report/schema.js';
import { coloured, runSummary } from '../../../tools/loadgen/report/terminal.js';

const record = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  ...{ request: 0, sample: 0, turn: 0, worker: 0, outcome: 'completed', status: 200, attempts: 1 },
  ...{ scheduledMs: 1000, sentMs: 1010, firstMs: 1110, lastMs: 1310, endMs: 1320 },
  ...{ promptTokens: 12, completionTokens: 5, cachedTokens: Number.NaN, pieces: 4, streamed: true },
  ...fields,
});

const latency = (p50: number, p99: number) => ({
  ...{ count: 1, mean: p50, deviation: 0, min: p50, p50, p90: p50, p95: p50, p99, p999: p99, max: p99 },
});
const health = {
  eventLoopUtilization: { mean: 0.1, max: 0.2 },
  ...{ loopDelayP99Ms: 1, loopDelayMaxMs: 2, gc: 0, cpu: { mean: 0.1, max: 0.2 }, connectionsOpened: 1 },
};

function run(label: string, requests: number, ttft: number, more: Partial<RunReport> = {}): RunReport {
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

const report = (...runs: RunReport[]): BenchReport => ({
  ...{ schema: REPORT_SCHEMA, skein: '0', startedAt: '2026-01-01T00:00:00Z', complete: true },
  target: { url: 'http://x', backend: 'chat', model: '</script><b>', streamed: true },
  machine: { cpu: 'c', cores: 1, memoryGiB: 1, features: [], node: 'v20', os: 'linux' },
  ...{ options: {}, data: { kind: 'random' }, warmup: { requests: 0, completed: 0 }, sweep: null, runs },
  placement: { isOn: false, message: '', coordinator: null, workers: [null] },
});

describe('records', () => {
  it('come out of a frame as they went in, every field', () => {
    const list = new RecordList(1);
    const values = Object.keys(record());
    const odd = Object.fromEntries(values.map((name, i) => [name, i + 100])) as unknown as RequestRecord;
    const records = [
      record({ outcome: 'not_sent', streamed: false }),
      { ...odd, outcome: 'stalled', streamed: true },
    ];
    for (const one of records) list.push(one as RequestRecord);
    const other = new RecordList(1);
    other.append(list.take());
    expect([...other]).toEqual(records);
    expect(list.length).toBe(0);
  });

  it('make metrics: from the sending and from the schedule, tokens as the server counts, goodput', () => {
    const metrics = new RunMetrics({ ttftMs: 150, tpotMs: 60 });
    metrics.add(record());
    metrics.add(record({ firstMs: 1200 }));
    metrics.add(record({ completionTokens: Number.NaN, sentMs: 1030 }));
    metrics.add(record({ outcome: 'stalled', sentMs: 2000, endMs: 3000 }));
    expect(metrics.histograms.ttft.minMs).toBe(80);
    expect(metrics.histograms.ttftFromScheduled.minMs).toBe(110);
    expect(metrics.histograms.e2e.maxMs).toBe(310);
    // 200 ms over the 4 tokens behind the first, as counted by the server; by pieces they are 3.
    expect(metrics.histograms.tpot.quantile(0.5)).toBeCloseTo(50, 1);
    expect(metrics.histograms.tpot.maxMs).toBeCloseTo(200 / 3, 6);
    expect(metrics).toMatchObject({ completionTokens: 14, withoutUsage: 1, answered: 3, total: 4, good: 1 });
    expect(metrics.histograms.queueing.count).toBe(4);
    expect(
      isGood({ ttftMs: 500, tpotMs: Number.NaN, e2eMs: 9e9 }, SLO_PRESETS['mlperf-llama3.1-8b-interactive']),
    ).toBe(true);
    expect(isGood({ ttftMs: 501, tpotMs: 1, e2eMs: 1 }, SLO_PRESETS['mlperf-llama3.1-8b-interactive'])).toBe(
      false,
    );
  });

  it('are lines of CSV with a column for each value', () => {
    const text = csvLines('a "b", c', [record({ outcome: 'http_error', streamed: false })], 1000);
    expect(text).toBe('"a ""b"", c",0,0,0,0,http_error,200,1,0.000000,0.010000,,,310.000,10.000,12,5,,4\n');
    const columns = text.replace(/^".*",/, 'x,').split(',').length;
    expect(CSV_HEAD.split(',')).toHaveLength(columns);
  });
});

describe('comparison', () => {
  it("has Welch's intervals: the worked example of two samples", () => {
    // Variances 15.724 and 4.483 of six each.
    const x = [27.5, 21, 19, 23.6, 17, 17.9];
    const y = [27.1, 22, 20.8, 23.4, 23.4, 23.5];
    // 7.6 degrees of freedom, of which whole ones count: 2.365 * sqrt(15.724 / 6 + 4.483 / 6).
    expect(welchHalf(x, y)).toBeCloseTo(2.365 * Math.sqrt(15.724 / 6 + 4.4827 / 6), 3);
    expect(welchHalf([1], y)).toBeNull();
    expect(welchHalf([2, 2], [3, 3])).toBe(0);
  });

  it('tells better from worse where repeated runs leave no doubt', () => {
    const a = report(run('c 1 #1', 10, 100), run('c 1 #2', 10.2, 104), run('c 1 #3', 9.8, 96));
    const b = report(run('c 1 #1', 20, 99), run('c 1 #2', 20.2, 105), run('c 1 #3', 19.8, 97));
    const find = (name: string) => compareReports(a, b).find(({ metric }) => metric === name)!;
    expect(find('requests/s')).toMatchObject({ verdict: 'better', change: 100, a: { mean: 10, runs: 3 } });
    expect(find('TTFT p50').verdict).toBe('same');
    expect(compareReports(b, a).find(({ metric }) => metric === 'requests/s')!.verdict).toBe('worse');
    const [low, high] = find('requests/s').interval!;
    expect([low < 100, high > 100]).toEqual([true, true]);
    expect(comparisonText(compareReports(a, b), ['a', 'b'])).toMatch(
      /requests\/s +10\.0 ± 0\.5 +20\.0 ± 0\.5 +\+100\.0 % \[/,
    );
  });

  it('has no interval of single runs, and says so', () => {
    const comparisons = compareReports(report(run('one', 10, 100)), report(run('other', 5, 100)));
    expect(comparisons[0]).toMatchObject({ verdict: 'unknown', interval: null, change: -50 });
    expect(comparisonText(comparisons, ['a', 'b'])).toContain('--repeat N makes them');
  });

  it('refuses reports without a load in common, and files that are none', () => {
    const two = report(run('x', 1, 1), run('y', 1, 1));
    expect(() => compareReports(two, report(run('z', 1, 1)))).toThrow(/no load in common: x, y and z/);
    expect(() => readReport('{', 'f')).toThrow(/f is not JSON/);
    expect(() => readReport('{"schema":"skein-bench/9"}', 'f')).toThrow(/schema "skein-bench\/9"; expected/);
    expect(() => readReport(JSON.stringify({ ...two, runs: [{}] }), 'f')).toThrow(
      /f is no report: runs\.0\.label/,
    );
    expect(readReport(JSON.stringify(two), 'f')).toEqual(two);
  });
});

describe('what people look at', () => {
  it('the page holds everything in itself, and nothing in the data ends its script', () => {
    const page = htmlReport([{ name: 'a<b', report: report(run('c', 1, 1)) }]);
    expect(page).not.toMatch(/<(script|link|img)[^>]+(src|href)=["']?(http|\/\/|\.)/);
    expect(page.match(/<\/script>/g)).toHaveLength(3);
    const [, json] = /<script type="application\/json" id="reports">(.*?)<\/script>/s.exec(page)!;
    expect(JSON.parse(json!)[0]).toMatchObject({
      name: 'a<b',
      report: { target: { model: '</script><b>' } },
    });
    expect(page).toContain('uPlot');
  });

  it('a run whose client was the bottleneck says so in red', () => {
    const findings = [{ code: 'late-issues', isBottleneck: true, message: 'Late.' }];
    const bad = run('c', 1, 1, { client: { ...run('c', 1, 1).client, isBottleneck: true, findings } });
    const red = '\u001b[31m';
    expect(runSummary(bad, coloured)).toContain(`${red}  THE CLIENT WAS A BOTTLENECK`);
    expect(runSummary(run('c', 1, 1), coloured)).not.toContain('BOTTLENECK');
  });

  it('sparklines go up to their greatest value', () => {
    expect(sparkline([0, 1, 4, 8])).toBe(' ▂▅█');
    expect(sparkline([])).toBe('');
  });
});
