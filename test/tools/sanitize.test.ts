import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { figuresOf, figuresTable, roundsOf } from '../../tools/sanitize/figures.js';
import { readDocument, repository } from '../support/documents.js';

describe('the figures of the sanitizers', () => {
  it('count what was run and what it tried', () => {
    const report = {
      testResults: [
        {
          assertionResults: [
            { status: 'passed', meta: { tried: { what: 'inputs' as const, count: 20 } } },
            { status: 'passed', meta: { tried: { what: 'files' as const, count: 7 } } },
          ],
        },
        { assertionResults: [{ status: 'passed', meta: {} }, { status: 'skipped' }] },
      ],
    };
    expect(figuresOf(report)).toEqual({ tests: 3, inputs: 20, files: 7 });
  });

  it('refuse a run of nothing', () => {
    expect(() => figuresOf({ testResults: [] })).toThrow('No test was run.');
    expect(() => figuresOf({ testResults: [{ assertionResults: [{ status: 'skipped' }] }] })).toThrow();
  });

  it('read the lines of the driver', () => {
    expect([...roundsOf('pool 12\nbegun steps 3\n')]).toEqual([
      ['pool', 12],
      ['begun steps', 3],
    ]);
  });

  it('stand in SECURITY.md as they are written, and are not of nothing', () => {
    const table = figuresTable({ tests: 1, inputs: 2, files: 3 }, new Map([['pool', 4]]));
    const labels = table.split('\n').map((row) => row.replace(/\([^)]*\) \| \d+|\d+(?= \|$)/, ''));
    const [, section = ''] =
      /<!-- sanitizers -->\n([\s\S]*?)<!-- \/sanitizers -->/.exec(readDocument('SECURITY.md')) ?? [];
    const rows = section.trim().split('\n');
    expect(rows.map((row) => row.replace(/\([^)]*\) \| \d+|\d+(?= \|$)/, ''))).toEqual(labels);
    const counts = rows.slice(2).map((row) => Number(/(\d+) \|$/.exec(row)?.[1]));
    expect(counts.slice(0, -1).every((count) => count > 0)).toBe(true);
    expect(counts.at(-1)).toBe(0);
  });
});

describe('another addon', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-another-'));
  const before = process.env.SKEIN_PREBUILD;
  afterEach(() => {
    if (before === undefined) delete process.env.SKEIN_PREBUILD;
    else process.env.SKEIN_PREBUILD = before;
    rmSync(folder, { recursive: true, force: true });
  });

  it('is loaded where SKEIN_PREBUILD names the folder above its build', () => {
    const { resolve } = createRequire(import.meta.url)('node-gyp-build') as { resolve(root: string): string };
    const release = join(folder, 'build/Release');
    mkdirSync(release, { recursive: true });
    copyFileSync(join(repository, 'build/Release/skein.node'), join(release, 'skein.node'));
    delete process.env.SKEIN_PREBUILD;
    expect(resolve(repository)).toBe(join(repository, 'build/Release/skein.node'));
    process.env.SKEIN_PREBUILD = folder;
    expect(resolve(repository)).toBe(join(release, 'skein.node'));
  });
});
