import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readReport, type TestRun } from './report.js';
import { filesToRunAgain, type SecondRun } from './verdict.js';

/** Where the runs of `npm test` and `.ci/run` leave their reports, from the repository's root. */
export const REPORTS = 'build/test-reports';

const VITEST = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
const REPORTER = fileURLToPath(new URL('reporter.ts', import.meta.url));

/**
 * Runs Vitest in the current directory, and leaves its report at `reportPath`.
 *
 * @param args its options and files
 * @returns the exit code, 128 and the signal's number if a signal ended it
 */
export function runVitest(
  args: readonly string[],
  reportPath: string,
  stdio: 'inherit' | 'ignore' = 'inherit',
): number {
  mkdirSync(dirname(reportPath), { recursive: true });
  const reporters = ['--reporter=default', `--reporter=${REPORTER}`, `--outputFile.json=${reportPath}`];
  const { status, signal } = spawnSync(process.execPath, [VITEST, 'run', ...reporters, ...args], {
    stdio: ['ignore', stdio, stdio],
  });
  return status ?? 128 + constants.signals[signal!];
}

/**
 * The runs that left their reports in a folder.
 *
 * @param runs `NAME=EXIT_CODE` each, with the report NAME.json
 */
export function readRuns(folder: string, runs: readonly string[]): TestRun[] {
  return runs.map((run) => {
    const [name = '', exitCode] = run.split('=');
    return {
      name,
      exitCode: Number(exitCode ?? Number.NaN),
      report: readReport(join(folder, `${name}.json`)),
    };
  });
}

/** Runs the failed files of these runs once more, a process each, and notes the results in the folder. */
export function runAgain(folder: string, runs: readonly TestRun[]): SecondRun[] {
  const secondRuns = filesToRunAgain(runs).map((file, index): SecondRun => {
    const path = join(folder, 'second', `${index}.json`);
    console.log(`\nOnce more, alone: ${file.name}`);
    const project = file.project ? [`--project=${file.project}`] : [];
    const exitCode = runVitest([...project, file.name], path);
    return { name: `second run of ${file.name}`, file: file.name, exitCode, report: readReport(path) };
  });
  writeFileSync(secondRunsPath(folder), JSON.stringify(secondRuns));
  return secondRuns;
}

/** What `runAgain` noted; none if it did not come to its end. */
export function readSecondRuns(folder: string): SecondRun[] {
  try {
    return JSON.parse(readFileSync(secondRunsPath(folder), 'utf8')) as SecondRun[];
  } catch {
    return [];
  }
}

const secondRunsPath = (folder: string) => join(folder, 'second-runs.json');
