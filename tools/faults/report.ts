import { type Cell, markdownTable } from '../support/markdown-table.js';
import { FAULTS } from './kinds/index.js';
import { commandOf, countsText, type RunOptions } from './options.js';
import type { FaultReport } from './run-faults.js';
import { planText } from './schedule.js';

/** Wrong answers that are shown. */
const MAX_SHOWN = 20;

/** A report in lines. */
export function reportLines(report: FaultReport): string[] {
  const { wrong, leftovers, struck, numMissed, numRequests, numTokens, seconds } = report;
  return [
    ...wrong.slice(0, MAX_SHOWN).map(({ index, kind, what }) => `WRONG request ${index} (${kind}): ${what}`),
    ...leftovers.map((what) => `LEFT ${what}`),
    `${numRequests} requests, ${numTokens} tokens, ${struck.length} faults, ${seconds.toFixed(1)} s: ` +
      `${numRequests - wrong.length} answers whole and equal, longest pause ${secondsOf(report)} s`,
    `faults: ${countedText(struck.map(({ kind, what }) => (kind === what ? kind : `${kind} (${what})`)))}`,
    `asked again: ${retriesText(report) || 'none'}`,
    ...(numMissed === 0 ? [] : [`${numMissed} faults had no process to strike`]),
  ];
}

/** For each wrong answer the shortest run that may show it. */
export const reproductions = ({ wrong }: FaultReport, options: RunOptions): string[] =>
  wrong
    .slice(0, MAX_SHOWN)
    .map(({ index, faults }) => `Alone: ${commandOf(options, { only: [index], at: planText(faults) })}`);

/** The documents' table of flags. */
export const flagsTable = (): string =>
  markdownTable(
    ['flag', 'how many'],
    FAULTS.map(({ flag, help }) => [`\`--${flag}\``, help]),
    2,
  );

/** Column names of the documents' table. */
export const HEAD: readonly Cell[] = [
  ...['faults', 'requests', 'struck', 'whole and equal', 'asked again', 'longest pause, s'],
];

/** A line of the documents' table. */
export const tableLine = (report: FaultReport, options: RunOptions): Cell[] => [
  [...(options.router === '' ? [] : [`--router ${options.router}`]), ...countsText(options.counts)]
    .map((flag) => `\`${flag}\``)
    .join(' '),
  report.numRequests,
  report.struck.length,
  report.numRequests - report.wrong.length,
  Object.values(report.retries).reduce((sum, count) => sum + count, 0),
  secondsOf(report),
];

const secondsOf = ({ longestPauseMs }: FaultReport) => (longestPauseMs / 1000).toFixed(1);

export const retriesText = ({ retries }: FaultReport): string =>
  Object.entries(retries)
    .map(([reason, count]) => `${count} ${reason}`)
    .join(', ');

function countedText(texts: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([text, count]) => `${count} ${text}`).join(', ') || 'none';
}
