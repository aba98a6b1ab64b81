import { writeSection } from '../document-section.js';
import { markdownTable } from '../support/markdown-table.js';
import { ROUTERS } from './fleet/routers.js';
import { FAULTS } from './kinds/index.js';
import type { RunOptions, Surroundings } from './options.js';
import { flagsTable, HEAD, reportLines, tableLine } from './report.js';
import { type KnownAnswers, wholeRun } from './whole-run.js';

const DOCUMENT = 'docs/architecture/faults.md';
/** Faults of a kind in the run that has no others. */
const ALONE = 5;
/** Kinds that a fleet behind a router of another project can have. */
const FOR_ROUTERS = ['kills', 'stops', 'partitions'];

/** Runs each kind of fault alone, all of them together, and the routers; writes the table. @returns the exit code */
export async function writeSeries(
  options: RunOptions,
  surroundings: Surroundings,
  onProgress: (text: string) => void,
): Promise<number> {
  const known: KnownAnswers = new Map();
  const lines = [];
  let isRight = true;
  for (const one of seriesOf(options)) {
    const report = await wholeRun(one, surroundings, onProgress, known);
    for (const line of reportLines(report)) console.log(line);
    isRight &&= report.wrong.length === 0 && report.leftovers.length === 0;
    lines.push(tableLine(report, one));
  }
  writeSection(DOCUMENT, 'flags', flagsTable());
  writeSection(DOCUMENT, 'figures', markdownTable(HEAD, lines));
  return isRight ? 0 : 1;
}

/** The runs of the table. */
export function seriesOf(options: RunOptions): RunOptions[] {
  const none = Object.fromEntries(FAULTS.map(({ flag }) => [flag, 0]));
  const all = Object.fromEntries(FAULTS.map(({ flag }) => [flag, 3]));
  const forRouters = Object.fromEntries(FOR_ROUTERS.map((flag) => [flag, 2]));
  return [
    ...FAULTS.map(({ flag }) => ({ ...options, counts: { ...none, [flag]: ALONE } })),
    { ...options, requests: 5 * options.requests, prefill: 1, counts: all },
    ...ROUTERS.map(({ name }) => ({ ...options, router: name, counts: { ...none, ...forRouters } })),
  ];
}
