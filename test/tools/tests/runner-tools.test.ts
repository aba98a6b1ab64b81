import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stageOf, stageTable } from '../../../.ci/stage-table.mjs';
import { propertyTestsIn, seedOf } from '../../../tools/tests/property-tests.js';
import type { FileResult, TestReport, TestRun } from '../../../tools/tests/report.js';
import { ofLastRun, slowestFiles, slowestTests } from '../../../tools/tests/slowest.js';
import { failuresOf, isPassed } from '../../../tools/tests/stress-result.js';
import { repository } from '../../support/documents.js';

const report = (startTime: number, ...testResults: FileResult[]): TestReport => ({
  startTime,
  testResults,
  unhandledErrors: [],
});

describe('the stages of .ci/run', () => {
  it('are a table in the order in which they began, with the seconds of the clock and of processors', () => {
    const noted = (begun: number, ended: number) =>
      `${begun} ${ended}\n0m0.010s 0m0.020s\n1m2.500s 0m3.470s\n`;
    const stages = [
      stageOf('lint', noted(130, 137.5)),
      stageOf('docs site', noted(100, 120).replaceAll('.', ',')),
    ];
    expect(stageTable(stages)).toBe(
      [
        'Stage                      seconds processor s',
        'docs site                     20.0        66.0',
        'lint                           7.5        66.0',
        'all                           37.5       132.0',
      ].join('\n'),
    );
  });
});

describe('the slowest tests', () => {
  const file = (
    name: string,
    testMs: number,
    importMs: number,
    tests: Record<string, number>,
    processorMs?: number,
  ): FileResult => ({
    name: `/repo/${name}`,
    status: 'passed',
    message: '',
    testMs,
    importMs,
    ...(processorMs !== undefined && { processorMs }),
    assertionResults: Object.entries(tests).map(([fullName, duration]) => ({
      fullName,
      status: 'passed',
      duration,
    })),
  });
  const first = report(100, file('a.test.ts', 30, 5, { quick: 10, slow: 20 }));
  const second = report(200, file('b.test.ts', 10, 90, { imported: 10.5 }));

  it('are of all reports of the last run, and of no earlier one', () => {
    expect(ofLastRun(first, [second])).toEqual([first, second]);
    expect(ofLastRun(second, [first])).toEqual([second]);
  });

  it('are listed by what they took, files with their imports', () => {
    expect(slowestFiles([first, second], '/repo')).toEqual([
      { name: 'b.test.ts', ms: 10, importMs: 90, processorMs: 0 },
      { name: 'a.test.ts', ms: 30, importMs: 5, processorMs: 0 },
    ]);
    const measured = report(
      100,
      file('waits.test.ts', 5000, 5, {}, 40),
      file('works.test.ts', 30, 5, {}, 60),
    );
    expect(slowestFiles([measured], '/repo').map(({ name }) => name)).toEqual([
      'works.test.ts',
      'waits.test.ts',
    ]);
    expect(slowestTests([first, second], '/repo').map(({ name }) => name)).toEqual([
      'a.test.ts: slow',
      'b.test.ts: imported',
      'a.test.ts: quick',
    ]);
  });
});

describe('runs of one file under stress', () => {
  const run = (exitCode: number, tests: Record<string, string>): TestRun => ({
    name: 'a.test.ts',
    exitCode,
    report: report(0, {
      name: '/repo/a.test.ts',
      status: exitCode === 0 ? 'passed' : 'failed',
      message: '',
      assertionResults: Object.entries(tests).map(([fullName, status]) => ({
        fullName,
        status,
        failureMessages: status === 'failed' ? ['Too slow'] : [],
      })),
    }),
  });

  it('pass with all their tests', () => {
    expect(isPassed(run(0, { a: 'passed' }))).toBe(true);
    expect(isPassed(run(0, { a: 'passed', b: 'skipped' }))).toBe(false);
    expect(isPassed(run(0, {}))).toBe(false);
    expect(isPassed(run(1, { a: 'failed' }))).toBe(false);
    expect(isPassed({ name: 'a.test.ts', exitCode: 137, report: null })).toBe(false);
  });

  it('are summed up by what failed, the most frequent first', () => {
    const runs = [
      run(0, { a: 'passed', b: 'passed' }),
      run(1, { a: 'failed', b: 'passed' }),
      run(1, { a: 'failed', b: 'skipped' }),
      { name: 'a.test.ts', exitCode: 137, report: null },
    ];
    expect(failuresOf(runs)).toEqual([
      { what: 'a', count: 2, error: 'Too slow' },
      { what: 'b', count: 1, error: 'It did not run (skipped).' },
      {
        what: 'outside of the tests',
        count: 1,
        error: 'The test run "a.test.ts" left no report (exit code 137).',
      },
    ]);
  });
});

describe('property tests', () => {
  it('have a seed for each day', () => {
    expect(seedOf(new Date('2026-01-31T23:59:59Z'))).toBe(20260131);
    expect(seedOf(new Date('2026-02-01T00:00:00Z'))).toBe(20260201);
  });

  it('are found among all tests', () => {
    const found = propertyTestsIn(join(repository, 'test/base'));
    expect(found).toContain(join(repository, 'test/base/error-text.test.ts'));
    expect(found).not.toContain(join(repository, 'test/base/columns.test.ts'));
  });
});
