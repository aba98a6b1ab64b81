import type { TestReport } from './report.js';

/** A file or a test, and what it took in milliseconds. */
export interface Timed {
  readonly name: string;
  /** Of a test, or of a file's tests and hooks. */
  readonly ms: number;
  /** Of a file: until its tests are known. */
  readonly importMs: number;
  /** Processor time of a file, its imports included; 0 where it was not measured. */
  readonly processorMs: number;
}

/**
 * The reports of the last run: the newest of the first part, `npm test`, and what ran after it. A newer `npm test` alone
 * leaves the report of an older second part where it was.
 */
export function ofLastRun(first: TestReport, others: readonly TestReport[]): TestReport[] {
  return [first, ...others.filter(({ startTime }) => startTime >= first.startTime)];
}

/** Files by their processor time, or without it by the time of their tests and imports, the slowest first. */
export function slowestFiles(reports: readonly TestReport[], root: string): Timed[] {
  return reports
    .flatMap(({ testResults }) => testResults)
    .map(({ name, testMs = 0, importMs = 0, processorMs = 0 }) => {
      return { name: shown(name, root), ms: testMs, importMs, processorMs };
    })
    .toSorted((a, b) => b.processorMs - a.processorMs || b.ms + b.importMs - a.ms - a.importMs);
}

/** Tests by what they took, the slowest first. */
export function slowestTests(reports: readonly TestReport[], root: string): Timed[] {
  return reports
    .flatMap(({ testResults }) => testResults)
    .flatMap((file) =>
      file.assertionResults.map(({ fullName, duration = 0 }) => ({
        name: `${shown(file.name, root)}: ${fullName}`,
        ms: duration,
        importMs: 0,
        processorMs: 0,
      })),
    )
    .toSorted((a, b) => b.ms - a.ms);
}

const shown = (path: string, root: string) =>
  path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
