import { readFileSync } from 'node:fs';

/** A test in a report of `reporter.ts`. */
export interface TestResult {
  readonly fullName: string;
  /** `passed`, `failed`, or why it did not run: `skipped`, `pending`, `todo`, `disabled`. */
  readonly status: string;
  /** Milliseconds; absent if the test did not run. */
  readonly duration?: number;
  readonly failureMessages?: readonly string[];
}

export interface FileResult {
  /** Absolute path. */
  readonly name: string;
  readonly status: string;
  /** The error of a file that does not load, or of a hook. */
  readonly message: string;
  readonly assertionResults: readonly TestResult[];
  readonly project?: string;
  /** Milliseconds until the file's tests are known: setup files and imports. */
  readonly importMs?: number;
  /** Milliseconds of its tests and hooks. */
  readonly testMs?: number;
  /** Milliseconds of processor time that its imports and tests took; see test/support/processor-time.ts. */
  readonly processorMs?: number;
}

/** What `reporter.ts` writes about a run of Vitest. */
export interface TestReport {
  /** Milliseconds since 1970. */
  readonly startTime: number;
  readonly testResults: readonly FileResult[];
  readonly unhandledErrors: readonly string[];
}

/** A process of Vitest that has ended. */
export interface TestRun {
  readonly name: string;
  readonly exitCode: number;
  /** Null if there is none, or half of one. */
  readonly report: TestReport | null;
}

/** Reads a report; null if it is missing or is not whole. */
export function readReport(path: string): TestReport | null {
  try {
    const report = JSON.parse(readFileSync(path, 'utf8')) as TestReport;
    return Array.isArray(report.testResults) && Array.isArray(report.unhandledErrors) ? report : null;
  } catch {
    return null;
  }
}

export function hasFailed(file: FileResult): boolean {
  return file.status === 'failed' || file.assertionResults.some((test) => test.status === 'failed');
}

/** The first line of the file's first error. */
export function firstError(file: FileResult): string {
  const failed = file.assertionResults.find((test) => test.status === 'failed');
  const text =
    failed === undefined ? file.message : `${failed.fullName}: ${failed.failureMessages?.[0] ?? ''}`;
  return text.split('\n', 1)[0]!.trim();
}

export const didNotRun = ({ status }: TestResult) => status !== 'passed' && status !== 'failed';

/** What makes a run invalid whatever its tests say. */
export function troubleOf({ name, exitCode, report }: TestRun): string[] {
  if (report === null) return [`The test run "${name}" left no report (exit code ${exitCode}).`];
  const outside = report.unhandledErrors.map(
    (error) => `The test run "${name}" had an error outside of its tests: ${error}`,
  );
  // Vitest exits with 1 for failed tests. Any other code is that of a process that died.
  const expected = report.testResults.some(hasFailed) ? 1 : 0;
  if (outside.length > 0 || exitCode === expected) return outside;
  return [`The test run "${name}" ended with exit code ${exitCode}; its report asks for ${expected}.`];
}
