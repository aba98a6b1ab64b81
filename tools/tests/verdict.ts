import { readFileSync } from 'node:fs';
import { didNotRun, type FileResult, firstError, hasFailed, type TestRun, troubleOf } from './report.js';

/** An entry of `test/flaky.json`. */
export interface FlakyFile {
  /** Path from the repository's root. */
  readonly file: string;
  readonly error: string;
  /** As 2026-01-31. */
  readonly date: string;
}

/** Reads `test/flaky.json`; null if it is no list of entries. */
export function readKnown(path: string): FlakyFile[] | null {
  try {
    const entries = JSON.parse(readFileSync(path, 'utf8')) as FlakyFile[];
    const isEntry = ({ file, error, date }: FlakyFile) =>
      typeof file === 'string' && typeof error === 'string' && /^\d{4}-\d\d-\d\d$/.test(date);
    return entries.every(isEntry) ? entries : null;
  } catch {
    return null;
  }
}

/** A file with a failed test that ran once more, alone. */
export interface SecondRun extends TestRun {
  /** Absolute path. */
  readonly file: string;
}

export interface Verdict {
  readonly isOk: boolean;
  readonly passed: number;
  readonly failed: number;
  /** Files that failed at first and passed alone. */
  readonly flaky: readonly FlakyFile[];
  /** Each is a reason why the run failed. */
  readonly problems: readonly string[];
}

/** Flaky files that a run may have. */
const MAX_FLAKY = 2;
/** With more failed files than this the run has failed whatever a second run shows. */
const MAX_SECOND_RUNS = 8;

/** Files to run once more: those with a failed test, unless they are too many to be chance. */
export function filesToRunAgain(runs: readonly TestRun[]): FileResult[] {
  const failed = filesOf(runs).filter(hasFailed);
  return failed.length > MAX_SECOND_RUNS ? [] : failed;
}

/**
 * Judges a whole test run. A file that failed and then passed alone is flaky: it counts by its second run if at most two
 * files are flaky and `known` does not list it. Anything else that did not pass fails the run.
 *
 * @param known entries of `test/flaky.json`; null fails the run
 * @param options.root the repository's absolute path
 * @param options.date today, as 2026-01-31
 */
export function judge(
  runs: readonly TestRun[],
  secondRuns: readonly SecondRun[],
  known: readonly FlakyFile[] | null,
  options: { readonly root: string; readonly date: string },
): Verdict {
  const files = filesOf(runs).map((first) => judgeFile(first, secondRuns, known ?? [], options.root));
  const flaky = files.filter(({ again }) => again !== undefined);
  const isExcused = (one: JudgedFile) => one.again !== undefined && !one.isKnown && flaky.length <= MAX_FLAKY;
  const counted = files.map((one) => (isExcused(one) ? one.again! : one.first));
  const problems = [
    ...(known === null ? ['test/flaky.json is not a list of { file, error, date }.'] : []),
    ...runs.flatMap(troubleOf),
    ...files.flatMap((one) => (isExcused(one) ? [] : problemsOf(one))),
    ...(flaky.length > MAX_FLAKY ? [`${flaky.length} files are flaky; at most ${MAX_FLAKY} may be.`] : []),
  ];
  const passed = sum(counted.map(countPassed));
  const failed = sum(counted.map(countFailed));
  if (passed === 0) problems.push('No test passed.');
  return {
    isOk: problems.length === 0 && failed === 0,
    passed,
    failed,
    flaky: flaky.map(({ path, first }) => ({ file: path, error: firstError(first), date: options.date })),
    problems,
  };
}

interface JudgedFile {
  /** From the repository's root. */
  readonly path: string;
  readonly first: FileResult;
  /** Its second run, if the first one failed and this one passed. */
  readonly again: FileResult | undefined;
  readonly isKnown: boolean;
}

function judgeFile(
  first: FileResult,
  secondRuns: readonly SecondRun[],
  known: readonly FlakyFile[],
  root: string,
): JudgedFile {
  const path = first.name.startsWith(`${root}/`) ? first.name.slice(root.length + 1) : first.name;
  const again = hasFailed(first) ? passedAgain(first, secondRuns) : undefined;
  return { path, first, again, isKnown: known.some(({ file }) => file === path) };
}

/** The file's result in a second run in which all its tests passed. */
function passedAgain(first: FileResult, secondRuns: readonly SecondRun[]): FileResult | undefined {
  const run = secondRuns.find(({ file }) => file === first.name);
  if (run === undefined || troubleOf(run).length > 0) return undefined;
  const again = run.report!.testResults.find(({ name }) => name === first.name);
  if (again === undefined || hasFailed(again)) return undefined;
  const tests = again.assertionResults;
  const hasAll = tests.length > 0 && tests.length >= first.assertionResults.length;
  return hasAll && !tests.some(didNotRun) ? again : undefined;
}

function problemsOf({ path, first, again, isKnown }: JudgedFile): string[] {
  const problems = first.assertionResults
    .filter(didNotRun)
    .map(({ fullName, status }) => `NOT RUN (${status}) ${path}: ${fullName}`);
  if (again !== undefined && isKnown) {
    problems.push(`FLAKY AGAIN ${path}: test/flaky.json lists it since it was flaky before.`);
  } else if (again === undefined && hasFailed(first)) {
    problems.push(`FAILED ${path}: ${firstError(first)}`);
  }
  return problems;
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
const filesOf = (runs: readonly TestRun[]) => runs.flatMap(({ report }) => report?.testResults ?? []);

function countPassed(file: FileResult): number {
  return file.assertionResults.filter(({ status }) => status === 'passed').length;
}

/** A file that does not load, or whose hook failed, has no failed test of its own: it counts as one. */
function countFailed(file: FileResult): number {
  const failed = file.assertionResults.filter(({ status }) => status === 'failed').length;
  return failed === 0 && hasFailed(file) ? 1 : failed;
}
