import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKnown } from '../../../tools/tests/verdict.js';
import { repository } from '../../support/documents.js';

/** A small project with a test that passes the second time, one that never does and one that always does. */
const FILES = {
  'test/flaky.test.js': `
    import { existsSync, writeFileSync } from 'node:fs';
    it('passes the second time', () => {
      const isSecond = existsSync('seen');
      writeFileSync('seen', '');
      expect(isSecond).toBe(true);
    });`,
  'test/failing.test.js': `it('never passes', () => { throw new Error('It is broken.'); });`,
  'test/passing.test.js': `it('passes', () => {}); it('passes too', () => {});`,
  'test/flaky.json': '[]',
  'vitest.config.js': `export default { test: { globals: true, projects: [
    { extends: true, test: { name: 'small', include: ['test/*.test.js'] } }] } };`,
  'package.json': '{ "type": "module" }',
};

const folder = mkdtempSync(join(tmpdir(), 'skein-flaky-'));
const tsx = ['--import', 'tsx'];

function node(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  return { status, lines: `${stdout}${stderr}`.trimEnd().split('\n') };
}

const count = (...runs: string[]) =>
  node(...tsx, join(repository, '.ci/count-tests.mjs'), 'reports', ...runs);

describe('.ci/run in a small project', () => {
  let first: ReturnType<typeof node>;

  beforeAll(() => {
    mkdirSync(join(folder, 'test'));
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
    for (const [path, text] of Object.entries(FILES)) writeFileSync(join(folder, path), text);
    const reporter = `--reporter=${join(repository, 'tools/tests/reporter.ts')}`;
    first = node('node_modules/vitest/vitest.mjs', 'run', reporter, '--outputFile.json=reports/test.json');
    node(...tsx, join(repository, 'tools/tests/second-runs.ts'), 'reports', 'test=1');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('runs what failed once more, reports what is flaky, and fails for the file that failed twice', () => {
    expect(first.status).toBe(1);
    const { status, lines } = count('test=1');
    expect(lines).toEqual([
      'FAILED test/failing.test.js: never passes: Error: It is broken.',
      expect.stringMatching(
        /^FLAKY test\/flaky\.test\.js: passes the second time: AssertionError: expected false to be true/,
      ),
      'Add the entries of reports/flaky.json to test/flaky.json until they are mended.',
      'The run did not pass.',
      '3 passed, 1 failed',
    ]);
    expect(status).toBe(1);
    expect(readKnown(join(folder, 'reports/flaky.json'))).toEqual([
      {
        file: 'test/flaky.test.js',
        error: expect.stringContaining('expected false'),
        date: expect.any(String),
      },
    ]);
  });

  it('passes with the flaky file alone', () => {
    const path = join(folder, 'reports/test.json');
    const report = JSON.parse(readFileSync(path, 'utf8'));
    const kept = report.testResults.filter(({ name }: { name: string }) => !name.endsWith('failing.test.js'));
    writeFileSync(join(folder, 'reports/kept.json'), JSON.stringify({ ...report, testResults: kept }));
    expect(count('kept=1')).toMatchObject({ status: 0, lines: { length: 3, 2: '3 passed, 0 failed' } });
  });

  it('fails if a run left no report, or test/flaky.json cannot be read', () => {
    writeFileSync(join(folder, 'test/flaky.json'), '[');
    const { status, lines } = count('more=139');
    expect(lines[0]).toBe('test/flaky.json is not a list of { file, error, date }.');
    expect(lines.slice(1)).toEqual([
      'The test run "more" left no report (exit code 139).',
      'No test passed.',
      'The run did not pass.',
      '0 passed, 0 failed',
    ]);
    expect(status).toBe(1);
  });

  it('has times and a project for each file', () => {
    const report = JSON.parse(readFileSync(join(folder, 'reports/test.json'), 'utf8'));
    for (const { project, importMs, testMs } of report.testResults) {
      expect(project).toBe('small');
      expect(importMs).toBeGreaterThan(0);
      expect(testMs).toBeGreaterThan(0);
    }
    expect(report.unhandledErrors).toEqual([]);
  });
});

describe('test/flaky.json', () => {
  it('lists files that there are', () => {
    const known = readKnown(join(repository, 'test/flaky.json'))!;
    expect(known.filter(({ file }) => !existsSync(join(repository, file)))).toEqual([]);
  });
});
