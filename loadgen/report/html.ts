import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../base/package-info.js';
import { type Comparison, commonLoads } from './compare.js';
import type { BenchReport } from './schema.js';

/** Reports that stand on one page, each under a name. */
export interface NamedReport {
  name: string;
  report: BenchReport;
}

/**
 * One page that needs nothing else: data, script, library and style are in it. Several reports are compared, each with the
 * first.
 */
export function htmlReport(reports: readonly NamedReport[]): string {
  const title = reports.map(({ name }) => name).join(' and ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${asset('uPlot.min.css')}${asset('report.css')}</style>
</head>
<body>
<main id="report"></main>
<script type="application/json" id="reports">${inScript(JSON.stringify(reports))}</script>
<script type="application/json" id="changes">${inScript(JSON.stringify(changesFromFirst(reports)))}</script>
<script>${inScript(asset('uPlot.iife.min.js'))}</script>
<script>${inScript(asset('report.js'))}</script>
</body>
</html>
`;
}

/** The names of two reports, and what changed from one to the other. */
interface Changes {
  names: [string, string];
  comparisons: Comparison[];
}

function changesFromFirst([first, ...others]: readonly NamedReport[]): Changes[] {
  if (first === undefined) return [];
  return others
    .map(
      (other): Changes => ({
        names: [first.name, other.name],
        comparisons: commonLoads(first.report, other.report),
      }),
    )
    .filter(({ comparisons }) => comparisons.length > 0);
}

/** Where the build puts the page's files and those of the library. */
function asset(name: string): string {
  return readFileSync(join(packageRoot(), 'dist/report-page', name), 'utf8');
}

/** Nothing in it ends the element, or begins one. In JSON and in strings of scripts < may be written so. */
function inScript(text: string): string {
  return text.replaceAll('</', '<\\/').replaceAll('<!--', '<\\!--');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
