import { didNotRun, hasFailed, type TestRun, troubleOf } from './report.js';

/** A test, or something outside of the tests, that failed in some runs of a file. */
export interface FailureCount {
  readonly what: string;
  readonly count: number;
  /** Its first error. */
  readonly error: string;
}

/** Whether all tests of a run ran and passed, and the run ended as it should. */
export function isPassed(run: TestRun): boolean {
  const files = run.report?.testResults ?? [];
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  return troubleOf(run).length === 0 && tests.length > 0 && !files.some(hasFailed) && !tests.some(didNotRun);
}

/** What failed in several runs, the most frequent first. */
export function failuresOf(runs: readonly TestRun[]): FailureCount[] {
  const failures = new Map<string, FailureCount>();
  for (const { what, error } of runs.flatMap(failuresOfRun)) {
    const before = failures.get(what);
    failures.set(what, { what, count: (before?.count ?? 0) + 1, error: before?.error ?? error });
  }
  return [...failures.values()].toSorted((a, b) => b.count - a.count);
}

function failuresOfRun(run: TestRun): { what: string; error: string }[] {
  const outside = troubleOf(run).map((error) => ({ what: 'outside of the tests', error }));
  const inside = (run.report?.testResults ?? []).flatMap((file) => {
    const tests = file.assertionResults.filter(({ status }) => status !== 'passed');
    const failed = tests.map(({ fullName, status, failureMessages }) => ({
      what: fullName,
      error: failureMessages?.[0] ?? `It did not run (${status}).`,
    }));
    return file.message === ''
      ? failed
      : [{ what: 'the file or one of its hooks', error: file.message }, ...failed];
  });
  return [...outside, ...inside];
}
