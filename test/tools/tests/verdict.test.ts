import { describe, expect, it } from 'vitest';
import type { FileResult, TestReport, TestRun } from '../../../tools/tests/report.js';
import { type FlakyFile, filesToRunAgain, judge, type SecondRun } from '../../../tools/tests/verdict.js';

/** A file of a report; a test is `passed`, `failed` or why it did not run. */
function file(name: string, tests: Record<string, string>, message = ''): FileResult {
  const assertionResults = Object.entries(tests).map(([fullName, status]) => ({
    fullName,
    status,
    failureMessages: status === 'failed' ? [`${fullName} is wrong\n    at line 1`] : [],
  }));
  const isFailed = message !== '' || Object.values(tests).includes('failed');
  return { name: `/repo/test/${name}`, status: isFailed ? 'failed' : 'passed', message, assertionResults };
}

function report(...testResults: FileResult[]): TestReport {
  return { startTime: 0, testResults, unhandledErrors: [] };
}

function run(...files: FileResult[]): TestRun {
  return {
    name: 'test',
    exitCode: files.some(({ status }) => status === 'failed') ? 1 : 0,
    report: report(...files),
  };
}

function again(one: FileResult): SecondRun {
  return { ...run(one), file: one.name };
}

const GOOD = file('good.test.ts', { a: 'passed', b: 'passed' });
const BAD = file('bad.test.ts', { a: 'passed', b: 'failed' });
const MENDED = file('bad.test.ts', { a: 'passed', b: 'passed' });

const verdict = (runs: TestRun[], seconds: SecondRun[] = [], known: FlakyFile[] | null = []) =>
  judge(runs, seconds, known, { root: '/repo', date: '2026-01-31' });

describe('a run of the tests', () => {
  it('is good if all tests passed', () => {
    expect(verdict([run(GOOD), run(file('other.test.ts', { c: 'passed' }))])).toEqual({
      isOk: true,
      passed: 3,
      failed: 0,
      flaky: [],
      problems: [],
    });
  });

  it('is good if a failed file passed alone, which is flaky with its first error', () => {
    expect(verdict([run(GOOD, BAD)], [again(MENDED)])).toEqual({
      isOk: true,
      passed: 4,
      failed: 0,
      flaky: [{ file: 'test/bad.test.ts', error: 'b: b is wrong', date: '2026-01-31' }],
      problems: [],
    });
  });

  it('has failed if a file failed twice, or did not run again', () => {
    for (const seconds of [[again(BAD)], []]) {
      expect(verdict([run(GOOD, BAD)], seconds)).toEqual({
        isOk: false,
        passed: 3,
        failed: 1,
        flaky: [],
        problems: ['FAILED test/bad.test.ts: b: b is wrong'],
      });
    }
  });

  it('takes a file that did not load, or whose hook failed, as failed, and as flaky if it passed alone', () => {
    const unloaded = file('bad.test.ts', {}, 'No such module\n    at line 1');
    expect(verdict([run(GOOD, unloaded)], [again(unloaded)])).toMatchObject({
      isOk: false,
      passed: 2,
      failed: 1,
      problems: ['FAILED test/bad.test.ts: No such module'],
    });
    const hook = file('bad.test.ts', { a: 'skipped', b: 'skipped' }, 'The hook failed');
    expect(verdict([run(GOOD, hook)], [again(MENDED)])).toMatchObject({
      isOk: true,
      passed: 4,
      failed: 0,
      flaky: [{ error: 'The hook failed' }],
    });
  });

  const names = ['one.test.ts', 'two.test.ts', 'three.test.ts'];
  const failed = names.map((name) => file(name, { a: 'failed' }));
  const passedAlone = names.map((name) => again(file(name, { a: 'passed' })));

  it('may have two flaky files', () => {
    expect(verdict([run(...failed.slice(0, 2))], passedAlone)).toMatchObject({
      isOk: true,
      passed: 2,
      failed: 0,
    });
  });

  it('has failed with three flaky files, which count by their first runs', () => {
    const { flaky, ...judged } = verdict([run(GOOD, ...failed)], passedAlone);
    expect(judged).toEqual({
      isOk: false,
      passed: 2,
      failed: 3,
      problems: ['3 files are flaky; at most 2 may be.'],
    });
    expect(flaky.map((one) => one.file)).toEqual(names.map((name) => `test/${name}`));
  });

  it('has failed if a file is flaky that is known to be', () => {
    const known = [{ file: 'test/bad.test.ts', error: 'b: b is wrong', date: '2026-01-01' }];
    expect(verdict([run(GOOD, BAD)], [again(MENDED)], known)).toMatchObject({
      isOk: false,
      passed: 3,
      failed: 1,
      problems: ['FLAKY AGAIN test/bad.test.ts: test/flaky.json lists it since it was flaky before.'],
    });
    expect(verdict([run(GOOD, MENDED)], [], known).isOk).toBe(true);
    expect(verdict([run(GOOD)], [], null)).toMatchObject({
      isOk: false,
      problems: ['test/flaky.json is not a list of { file, error, date }.'],
    });
  });

  it('has failed if a test did not run, which a second run does not excuse', () => {
    for (const status of ['skipped', 'pending', 'todo']) {
      const some = file('some.test.ts', { a: 'passed', b: status });
      expect(verdict([run(some)], [again(file('some.test.ts', { a: 'passed', b: 'passed' }))])).toEqual({
        isOk: false,
        passed: 1,
        failed: 0,
        flaky: [],
        problems: [`NOT RUN (${status}) test/some.test.ts: b`],
      });
    }
  });
});

describe('a second run', () => {
  const excuses = (second: SecondRun) => verdict([run(GOOD, BAD)], [second]).isOk;

  it('excuses only with all tests of the file, and a process that ended well', () => {
    expect(excuses(again(MENDED))).toBe(true);
    expect(excuses(again(file('bad.test.ts', { a: 'passed' })))).toBe(false);
    expect(excuses(again(file('bad.test.ts', { a: 'passed', b: 'skipped' })))).toBe(false);
    expect(excuses({ ...again(GOOD), file: BAD.name })).toBe(false);
    expect(excuses({ ...again(MENDED), exitCode: 139 })).toBe(false);
    expect(excuses({ ...again(MENDED), exitCode: 1, report: null })).toBe(false);
    const outside = { ...report(MENDED), unhandledErrors: ['stray'] };
    expect(excuses({ ...again(MENDED), exitCode: 1, report: outside })).toBe(false);
  });

  it('is for every file with a failed test, unless there are too many for chance', () => {
    const failed = (count: number) =>
      Array.from({ length: count }, (_, index) => file(`${index}.test.ts`, { a: 'failed' }));
    expect(filesToRunAgain([run(GOOD, BAD), run(...failed(1))])).toEqual([BAD, ...failed(1)]);
    expect(filesToRunAgain([run(...failed(8))])).toHaveLength(8);
    expect(filesToRunAgain([run(...failed(9))])).toEqual([]);
  });
});

describe('a process of Vitest', () => {
  it.each<[string, Partial<TestRun>, string]>([
    [
      'left no report',
      { report: null, exitCode: 137 },
      'The test run "test" left no report (exit code 137).',
    ],
    [
      'died after its report',
      { exitCode: 139 },
      'The test run "test" ended with exit code 139; its report asks for 0.',
    ],
    [
      'failed with no failed test',
      { exitCode: 1 },
      'The test run "test" ended with exit code 1; its report asks for 0.',
    ],
    [
      'had an error outside of its tests',
      { exitCode: 1, report: { ...report(GOOD), unhandledErrors: ['Worker exited unexpectedly'] } },
      'The test run "test" had an error outside of its tests: Worker exited unexpectedly',
    ],
    [
      'has no exit code',
      { exitCode: Number.NaN },
      'The test run "test" ended with exit code NaN; its report asks for 0.',
    ],
  ])('fails the run if it %s', (_, broken, problem) => {
    const judged = verdict([run(file('other.test.ts', { c: 'passed' })), { ...run(GOOD), ...broken }]);
    expect(judged).toMatchObject({ isOk: false, failed: 0, problems: [problem] });
  });

  it('fails the run if it died with failed tests that passed alone', () => {
    const died = { ...run(GOOD, BAD), exitCode: 139 };
    expect(verdict([died], [again(MENDED)])).toMatchObject({
      isOk: false,
      problems: ['The test run "test" ended with exit code 139; its report asks for 1.'],
    });
  });

  it('has to have run tests', () => {
    expect(verdict([])).toMatchObject({ isOk: false, problems: ['No test passed.'] });
    expect(verdict([run()])).toMatchObject({ isOk: false, problems: ['No test passed.'] });
  });
});
