import { markdownTable } from '../support/markdown-table.js';
import { conditionsLine } from './comparison-report.js';
import type { ComparisonRecord } from './record.js';
import { mediansTable, ratiosTable, spreadLine, type TableColumn } from './tables.js';

/** A pair of tables each: medians, and how many times better Skein's are. */
const SHOWN = [
  { title: 'Tokens per second', key: 'tokensPerSecond', hasRatios: true },
  { title: 'First token, median, ms', key: 'firstTokenP50', hasRatios: true },
  { title: 'First token, 99th percentile, ms', key: 'firstTokenP99', hasRatios: true },
  { title: 'Between tokens, median, ms', key: 'interTokenP50', hasRatios: true },
  { title: 'Between tokens, 99th percentile, ms', key: 'interTokenP99', hasRatios: true },
  { title: 'Failed requests of a round', key: 'failed', hasRatios: false },
] as const;

/** The latencies of the summary, by what its rows call them. */
const SUMMARIZED = { 'first token': 'firstTokenP50', 'between tokens': 'interTokenP50' } as const;

/** A column for each number of clients. */
function columnsOf(record: ComparisonRecord, key: string): TableColumn[] {
  const names = [...new Set(record.recorded.measurements.map(({ column }) => column))];
  const clients = names.map((name) => Number(name.slice(1))).sort((a, b) => a - b);
  return clients.map((count) => ({
    title: count === 1 ? '1 client' : `${count} clients`,
    column: `c${count}`,
    key,
    isLatency: key !== 'tokensPerSecond',
  }));
}

/** Table of tokens a second of every side, with the ratios to each peer's best of tokens a second and of median latencies. */
export function httpSummary(record: ComparisonRecord): string {
  const columns = columnsOf(record, 'tokensPerSecond');
  const rates = mediansTable(record, columns).split('\n');
  const rounds = new Set(record.recorded.measurements.map(({ round }) => round)).size;
  const withoutBytes = (line: string) => cellsOf(line).filter((_, i) => i !== 1);
  const [head = [], , ...medians] = rates.slice(0, -1).map(withoutBytes);
  const ratioRows = Object.entries({ 'tokens/s': 'tokensPerSecond', ...SUMMARIZED }).flatMap(([name, key]) =>
    lastOfPeers(ratiosTable(record, columnsOf(record, key)).split('\n').slice(2).map(cellsOf)).map(
      ([ratio, ...cells]) => [`${ratio}: ${name}`, ...cells],
    ),
  );
  const rateRows = medians.map(([side, ...cells]) => [`${side}, tokens/s`, ...cells]);
  return [
    `${conditionsLine(record)} Medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.`,
    '',
    markdownTable(['', ...head.slice(1)], [...rateRows, ...ratioRows]),
  ].join('\n');
}

/** The last row of each pair of ours and a peer: the peer's best, where it has several formats. */
function lastOfPeers(rows: readonly string[][]): string[][] {
  const pairOf = ([label]: readonly string[]) => /^(.*? \/ [^ ,]+)/.exec(label!)![1]!;
  return rows.filter((row, i) => i + 1 === rows.length || pairOf(rows[i + 1]!) !== pairOf(row));
}

/** The cells of a line that `tableRow` has made. */
function cellsOf(line: string): string[] {
  return line.slice(2, -2).split(' | ');
}

/** Throughput, latencies and failures by number of clients. */
export function httpReport(record: ComparisonRecord): string {
  const { settings } = record.recorded;
  const tables = SHOWN.flatMap(({ title, key, hasRatios }) => [
    '',
    `${title}:`,
    '',
    mediansTable(record, columnsOf(record, key)),
    ...(hasRatios ? ['', ratiosTable(record, columnsOf(record, key))] : []),
  ]);
  return [
    `${conditionsLine(record)} Medians of the rounds;`,
    `prompts of ${settings.words} words, ${settings.generate} tokens an answer, at least ${settings.requests} answers for each client, one after the other;`,
    `connections: ${settings.connections}. Failed requests are in no other table.`,
    'Ratios say how many times better Skein is: rates divided by theirs, latencies the other way round.',
    spreadLine(record, columnsOf(record, 'tokensPerSecond')),
    ...tables,
  ]
    .join('\n')
    .trim();
}
