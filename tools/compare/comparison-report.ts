import { machineLine } from '../support/machine-words.js';
import { markdownTable } from '../support/markdown-table.js';
import { median } from '../support/statistics.js';
import type { ComparisonRecord } from './record.js';
import { isShapeName, parseShapes } from './shapes.js';
import { mediansTable, ratiosTable, spreadLine, type TableColumn } from './tables.js';

/** Tokens per second in a line of generation for every shape, then of prefill for those of one sequence. */
export function comparisonReport(record: ComparisonRecord): string {
  const { measurements } = record.recorded;
  const columns = rateColumns([...new Set(measurements.map(({ column }) => column))].filter(isShapeName));
  return [
    `${conditionsLine(record)} Medians; tokens per second.`,
    'Columns: sequences x tokens of their prompts. MB: the file with the weights.',
    spreadLine(record, columns),
    '',
    mediansTable(record, columns),
    '',
    ratiosTable(record, columns),
    '',
    javascriptTable(record, columns),
  ]
    .join('\n')
    .trim();
}

/** Machine, model, threads, and the versions of the other engines. */
export function conditionsLine({ recorded: { machine, settings, sides } }: ComparisonRecord): string {
  const versions = new Set(
    sides.filter(({ engine }) => engine !== 'skein').map(({ engine, version }) => `${engine} ${version}`),
  );
  const parts = [machineLine(machine), settings.model, `${settings.threads} threads each`, ...versions];
  return `${parts.join('; ')}.`;
}

/** Sorted as the table shows them: generation by prompt and sequences, then prefill by prompt. */
export function rateColumns(names: readonly string[]): TableColumn[] {
  const shapes = names
    .map((column) => ({ column, ...parseShapes([column])[0]! }))
    .sort((a, b) => a.promptTokens - b.promptTokens || a.sequences - b.sequences);
  const generation = shapes.map(({ column, sequences, promptTokens, shared }) => ({
    title: `generation ${sequences} x ${promptTokens}${shared ? ', shared' : ''}`,
    column,
    key: 'generationPerSecond',
  }));
  const single = shapes.filter(({ sequences }) => sequences === 1);
  const prefill = single.map(({ column, promptTokens }) => ({
    title: `prefill ${promptTokens}`,
    column,
    key: 'prefillPerSecond',
  }));
  return [...generation, ...prefill];
}

/** Empty where no side reported it. */
function javascriptTable(record: ComparisonRecord, columns: readonly TableColumn[]): string {
  const shares = (name: string, column: string) => record.values(name, column, 'javascriptShare');
  const shown = columns.filter(
    ({ column, key }) =>
      key === 'generationPerSecond' &&
      record.recorded.sides.some(({ name }) => shares(name, column).length > 0),
  );
  if (shown.length === 0) return '';
  const rows = record.recorded.sides
    .filter(({ engine }) => engine === 'skein')
    .map(({ name }) => [name, ...shown.map(({ column }) => median(shares(name, column)))] as const)
    .filter(([, ...values]) => !values.every(Number.isNaN))
    .map(([name, ...values]) => [
      name,
      ...values.map((value) => (Number.isNaN(value) ? '' : `${(100 * value).toFixed(1)} %`)),
    ]);
  return markdownTable(['share of an iteration in JavaScript', ...shown.map(({ title }) => title)], rows);
}
