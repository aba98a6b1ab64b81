import { markdownTable } from '../support/markdown-table.js';
import { median } from '../support/statistics.js';
import { conditionsLine } from './comparison-report.js';
import type { ComparisonRecord } from './record.js';

/** Columns of the table: what they have, of which measurement, and how it is written. */
const SHOWN = [
  ['all histories read, s', 'readMs', (ms: number) => (ms / 1000).toFixed(1)],
  ['first token of a later turn, median, ms', 'laterP50', (ms: number) => ms.toFixed(0)],
  ['99th percentile, ms', 'laterP99', (ms: number) => ms.toFixed(0)],
  ['whole turn, median, ms', 'turnP50', (ms: number) => ms.toFixed(0)],
  ['from the cache, %', 'cachedShare', (share: number) => (100 * share).toFixed(1)],
  ['tokens computed for a turn', 'computedTokens', (tokens: number) => tokens.toFixed(0)],
  ['tokens/s', 'tokensPerSecond', (rate: number) => rate.toFixed(1)],
  ['quickest agent / slowest', 'fairness', (share: number) => share.toFixed(2)],
] as const;

/** What agents measured of each server. */
export function agentsReport(record: ComparisonRecord): string {
  const { agents, turns, functions, history, result, generate } = record.recorded.settings;
  const rows = record.recorded.sides.map(({ name }) => [
    name,
    ...SHOWN.map(([, key, write]) => {
      const value = median(record.values(name, 'agents', key));
      return Number.isNaN(value) ? '' : write(value);
    }),
  ]);
  return [
    `${conditionsLine(record)} ${agents} agents at once, each with ${functions} functions, which all have, and a history of its own of ${history} tokens; ${turns} later turns, each with a result of ${result} tokens and an answer of ${generate}. Medians of the rounds.`,
    '',
    markdownTable(['server', ...SHOWN.map(([title]) => title)], rows),
  ].join('\n');
}
