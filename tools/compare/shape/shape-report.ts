import { comparisonReport, conditionsLine } from '../comparison-report.js';
import type { ComparisonRecord } from '../record.js';
import { isShapeName } from '../shapes.js';
import { mediansTable, type TableColumn } from '../tables.js';

export const STARTS = 'starts';

/** Columns of the table of starts, by the names of their values. */
const START_COLUMNS: readonly (readonly [key: string, title: string])[] = [
  ['readSeconds', 'reading the file once, s'],
  ['firstStartSeconds', 'first start, s'],
  ['laterStartSeconds', 'later start, s'],
  ['residentMb', 'resident, MB'],
  ['ownMb', 'of it own, MB'],
  ['keptMb', 'kept beside the file, MB'],
];

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
