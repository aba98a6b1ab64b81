import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { comparisonReport, conditionsLine } from '../comparison-report.js';
import { ComparisonRecord } from '../record.js';
import { isShapeName } from '../shapes.js';
import { mediansTable, type TableColumn } from '../tables.js';
import { MODEL_SHAPES } from './model-shapes.js';

export const STARTS = 'starts';

/** Columns of the table of starts, by the names of their values. */
const START_COLUMNS: readonly (readonly [key: string, title: string])[] = [
  ['readSeconds', 'reading the file once, s'],
  ['firstStartSeconds', 'first start, s'],
  ['laterStartSeconds', 'later start, s'],
  ['residentMb', 'resident, MB'],
  ['ownMb', 'of it own, MB'],
  ['keptMb', 'kept next to the file, MB'],
];

/**
 * The reports of this record and of those of the same machine in the folder's other files `shape-*.json`, in the order of MODEL_SHAPES.
 */
export function shapesReport(folder: string, record: ComparisonRecord): string {
  const { settings, machine } = record.recorded;
  const others = namesIn(folder)
    .filter((name) => /^shape-.*\.json$/.test(name))
    .map((name) => ComparisonRecord.read(join(folder, name)))
    .filter(({ recorded }) => isDeepStrictEqual(recorded.machine, machine))
    .filter(({ recorded }) => recorded.settings.model !== settings.model);
  const place = ({ recorded }: ComparisonRecord) =>
    MODEL_SHAPES.findIndex(({ name }) => `${recorded.settings.model}`.startsWith(`${name}.`));
  const all = [record, ...others].sort((a, b) => place(a) - place(b));
  return all.map(shapeReport).join('\n\n');
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

/** Rates as in the other comparisons, then starts and memory. */
export function shapeReport(record: ComparisonRecord): string {
  const { measurements } = record.recorded;
  const rates = measurements.some(({ column }) => isShapeName(column))
    ? [comparisonReport(record)]
    : [conditionsLine(record)];
  if (!measurements.some(({ column }) => column === STARTS)) return rates.join('');
  const columns = START_COLUMNS.map(
    ([key, title]): TableColumn => ({ title, column: STARTS, key, isLatency: true }),
  );
  return [...rates, mediansTable(record, columns, 1)].join('\n\n');
}
