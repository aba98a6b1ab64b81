import { machineLine } from '../../base/machine.js';
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

/** Throughput, latencies and failures by number of clients. */
export function httpReport(record: ComparisonRecord): string {
  const { machine, settings, sides, measurements } = record.recorded;
  const names = [...new Set(measurements.map(({ column }) => column))];
  const clients = names.map((name) => Number(name.slice(1))).sort((a, b) => a - b);
  const columnsOf = (key: string): TableColumn[] =>
    clients.map((count) => ({
      title: count === 1 ? '1 client' : `${count} clients`,
      column: `c${count}`,
      key,
      isLatency: key !== 'tokensPerSecond',
    }));
  const versions = new Set(
    sides.filter(({ engine }) => engine !== 'skein').map(({ engine, version }) => `${engine} ${version}`),
  );
  const tables = SHOWN.flatMap(({ title, key, hasRatios }) => [
    '',
    `${title}:`,
    '',
    mediansTable(record, columnsOf(key)),
    ...(hasRatios ? ['', ratiosTable(record, columnsOf(key))] : []),
  ]);
  return [
    `${machineLine(machine)}; ${settings.model}; ${settings.threads} threads each; ${[...versions].join('; ')}. Medians of the rounds;`,
    `prompts of ${settings.words} words, ${settings.generate} tokens an answer, at least ${settings.requests} answers for each client, one after the other;`,
    `connections: ${settings.connections}. Failed requests are in no other table.`,
    'Ratios say how many times better Skein is: rates divided by theirs, latencies the other way round.',
    spreadLine(record, columnsOf('tokensPerSecond')),
    ...tables,
  ]
    .join('\n')
    .trim();
}
