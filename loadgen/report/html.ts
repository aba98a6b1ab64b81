import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../base/package-info.js';
import { type Comparison, commonLoads } from './compare.js';
import type { BenchReport } from './schema.js';

/** A report of a page, under a name. */
export interface NamedReport {
  name: string;
  report: BenchReport;
}

/**
 * Makes a page that needs no other file: it holds data, script, library and style. Several reports are each compared
 * with the first.
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

/** Names of two reports, and the changes between them. */
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

/** Text of a file of the page or the library, where the build puts it. */
function asset(name: string): string {
  return readFileSync(join(packageRoot(), 'dist/report-page', name), 'utf8');
}

/**
 * Escapes a text so that nothing in it ends the script element, or begins one. JSON and strings of scripts allow this
 * form of <.
 */
function inScript(text: string): string {
  return text.replaceAll('</', '<\\/').replaceAll('<!--', '<\\!--');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
