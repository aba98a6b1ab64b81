import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareReports } from '../../loadgen/report/compare.js';
import { htmlReport, type NamedReport } from '../../loadgen/report/html.js';
import type { BenchReport } from '../../loadgen/report/schema.js';
import { launchChromium } from '../../tools/chromium.js';
import { visit } from '../src/server/dashboard/support/browser.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { report, run } from './support/reports.js';

let browser: Browser;
const folder = temporaryFolder('skein-report-page');
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser.close());

/** The page of these reports, opened from its file. */
async function open(...reports: NamedReport[]) {
  const path = join(folder, 'page.html');
  writeFileSync(path, htmlReport(reports));
  const { page, problems, close } = await visit(browser, pathToFileURL(path).href);
  return { page, problems, close, text: (await page.locator('main').allInnerTexts()).join('') };
}

const curve: [number, number][] = [
  [0, 1],
  [0.5, 2],
  [0.99, 9],
  [1, 10],
];
const loaded = (load: number, rate: number, ttft: number, repetition: number) =>
  run(`concurrency ${load} #${repetition + 1}`, rate, ttft, {
    ...{ load, repetition, curves: { ttft: curve, e2e: curve } },
  });

/** Twice each of two loads. */
const sweepOf = (rates: readonly [number, number], ttft: number): BenchReport => ({
  ...report(
    ...[1, 2].flatMap((load, i) => [
      loaded(load, rates[i]!, ttft, 0),
      loaded(load, rates[i]! + 0.2, ttft + 1, 1),
    ]),
  ),
  sweep: {
    over: 'concurrency',
    knee: { load: 2, requestsPerSecond: rates[1], outputTokensPerSecond: 50 },
    sustained: 2,
    isSaturated: true,
  },
});

describe('the page of a benchmark', () => {
  it('draws timelines, percentile curves, and throughput against latency of a sweep, from its file alone', async () => {
    const { page, problems, close, text } = await open({ name: 'a', report: sweepOf([10, 15], 100) });
    for (const title of [
      'Output tokens a second over load',
      'TTFT p99 over throughput',
      'E2E p99 over load',
    ]) {
      expect(text).toContain(title);
    }
    for (const title of ['Time to first token', 'End to end', 'Requests in flight', 'Pieces of answers']) {
      expect(text).toContain(title);
    }
    expect(text).toContain('Knee at 2 (50 output tokens/s). Kept up with until 2.');
    const drawn = await page.evaluate(() =>
      Array.from(document.querySelectorAll('canvas'), (canvas) => {
        const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
        return data.some((value) => value !== 0);
      }),
    );
    // Four of the sweep, two of the curves that there are, four timelines.
    expect(drawn).toEqual(Array(10).fill(true));
    expect(text).not.toContain('95 % interval');
    expect(problems).toEqual([]);
    await close();
  });

  it('of two benchmarks has the table of what changed, with its intervals, load by load', async () => {
    const [a, b] = [sweepOf([10, 15], 100), sweepOf([20, 15], 50)];
    const { page, problems, close, text } = await open(
      { name: 'old', report: a },
      { name: 'new', report: b },
    );
    expect(text).toContain('Comparison of 2 benchmarks');
    expect(text).toContain('From old to new');
    const tables = page.locator('.changes table');
    expect(await tables.count()).toBe(2);
    const rows = await tables.first().locator('tr').allInnerTexts();
    expect(rows[0]!.split('\t')).toEqual([
      'concurrency 1',
      'old',
      'new',
      'change',
      '95 % interval of it',
      '',
    ]);
    const [rate] = compareReports(a, b);
    const [low, high] = rate!.interval!;
    expect(rows[1]!.split('\t')).toEqual([
      ...['requests/s', '10.1 ± 1.27', '20.1 ± 1.27', '+99.0 %'],
      ...[`+${low.toFixed(1)} to +${high.toFixed(1)} %`, 'better'],
    ]);
    expect(await tables.first().locator('td.good').first().textContent()).toBe('better');
    const second = await tables.nth(1).locator('tr').allInnerTexts();
    expect(second[1]).toMatch(/^requests\/s\t.*\+0\.0 %\t-\d\.\d to \+\d\.\d %\tsame$/);
    expect(problems).toEqual([]);
    await close();
  });

  it('says in red what the client could not do, and that a run is incomplete', async () => {
    const findings = [{ code: 'late-issues', isBottleneck: true, message: 'Late.' }];
    const bad = run('c', 1, 1, {
      client: { ...run('c', 1, 1).client, isBottleneck: true, findings },
      complete: false,
      cutOff: 'SIGINT',
    });
    const { page, close } = await open({ name: 'a', report: report(bad) });
    const alerts = page.locator('.alert');
    expect(await alerts.allInnerTexts()).toEqual([
      'c: the client was a bottleneck\nLate.',
      'c is incomplete\nIt was cut off: SIGINT.',
    ]);
    const [red, green] = (await alerts.first().evaluate((alert) => getComputedStyle(alert).color))
      .match(/\d+/g)!
      .map(Number);
    expect(red).toBeGreaterThan(2 * green!);
    await close();
  });
});
