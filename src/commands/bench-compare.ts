import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { InputError } from '../../loadgen/errors.js';
import { compareReports, comparisonText, readReport } from '../../loadgen/report/compare.js';
import { htmlReport } from '../../loadgen/report/html.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';

export interface CompareFlags {
  json?: boolean;
  html?: string;
}

/**
 * Runs skein bench compare A.json B.json. @throws UsageError for files that are no reports, or have no load in common.
 */
export function compareFiles(a: string, b: string, flags: CompareFlags): void {
  try {
    const [left, right] = [read(a), read(b)];
    const names = namesOf(a, b);
    const comparisons = compareReports(left, right);
    if (flags.html !== undefined) {
      const reports = [left, right].map((report, i) => ({ name: names[i]!, report }));
      writeFileSync(flags.html, htmlReport(reports));
    }
    process.stdout.write(
      flags.json ? `${JSON.stringify(comparisons)}\n` : comparisonText(comparisons, names),
    );
  } catch (error) {
    if (error instanceof InputError) throw new UsageError(error.message);
    throw error;
  }
}

function read(path: string): ReturnType<typeof readReport> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The report ${path} cannot be read: ${fileProblem(error)}`);
  }
  return readReport(text, path);
}

/** File names without the parts that both have in common. */
function namesOf(a: string, b: string): [string, string] {
  const short = (path: string) =>
    basename(path)
      .replace(/\.json$/, '')
      .slice(-20);
  return short(a) === short(b) ? ['A', 'B'] : [short(a), short(b)];
}
