import { describe, expect, it } from 'vitest';
import { RunMetrics } from '../../loadgen/metrics/run-metrics.js';
import { isGood, SLO_PRESETS } from '../../loadgen/metrics/slo.js';
import { RecordList, type RequestRecord } from '../../loadgen/records.js';
import { compareReports, comparisonText, readReport, welchHalf } from '../../loadgen/report/compare.js';
import { CSV_HEAD, csvLines } from '../../loadgen/report/csv.js';
import { htmlReport } from '../../loadgen/report/html.js';
import { sparkline } from '../../loadgen/report/live.js';
import { coloured, runSummary } from '../../loadgen/report/terminal.js';
import { report, run } from './support/reports.js';

const record = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  ...{ request: 0, sample: 0, turn: 0, worker: 0, outcome: 'completed', status: 200, attempts: 1 },
  ...{ scheduledMs: 1000, sentMs: 1010, firstMs: 1110, lastMs: 1310, endMs: 1320 },
  ...{ promptTokens: 12, completionTokens: 5, cachedTokens: Number.NaN, pieces: 4, streamed: true },
  ...fields,
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
    // 200 ms over the 4 tokens after the first, as counted by the server; by pieces they are 3.
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

  it("are judged by MLPerf's limits of the benchmarks that it has", () => {
    expect(SLO_PRESETS).toEqual({
      'mlperf-llama3.1-8b-server': { ttftMs: 2000, tpotMs: 100 },
      'mlperf-llama3.1-8b-interactive': { ttftMs: 500, tpotMs: 30 },
      'mlperf-llama2-70b-server': { ttftMs: 2000, tpotMs: 200 },
      'mlperf-llama2-70b-interactive': { ttftMs: 450, tpotMs: 40 },
    });
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
    expect(page.match(/<\/script>/g)).toHaveLength(4);
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
