import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { repository } from '../../support/documents.js';

/** The test misses what happens above 3. */
const SOURCE = `export function count(n: number): number {
  let i = 0;
  if (n > 3) return 3;
  while (i < n) i += 1;
  return i;
}
`;
const testOf = (n: number, expected: number) => `import { expect, it } from 'vitest';
import { count } from '../../base/count.js';
it('counts', () => expect(count(${n})).toBe(${expected}));
`;

const OTHER = 'export const other = 1;\n';
const OTHER_TEST = `import { expect, it } from 'vitest';
import { other } from '../../base/other.js';
it('is a number', () => expect(other).toBeTypeOf('number'));
`;

const folder = mkdtempSync(join(tmpdir(), 'skein-mutate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function mutate(...args: string[]) {
  const main = join(repository, 'tools/mutate/main.ts');
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', main, ...args], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, lines: `${stdout}${stderr}`.trimEnd().split('\n') };
}

it('npm run test:mutate reports the changes that no test notices, and leaves the source as it is', () => {
  write('package.json', '{ "type": "module" }');
  write('base/count.ts', SOURCE);
  write('test/base/count.test.ts', testOf(2, 2));
  write('base/other.ts', OTHER);
  write('test/base/other.test.ts', OTHER_TEST);
  write('test/support/property-seed.ts', '');
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));

  const { status, lines } = mutate('base', '--sample', '4', '--seed', '217');
  expect(lines.slice(0, 5)).toEqual([
    '1/4 survived  base/count.ts:3 (condition) n > 3 -> false',
    '2/4 failed    base/count.ts:4 (comparison) < -> <=',
    '    test/base/count.test.ts: counts',
    // A loop without an end.
    '3/4 died      base/count.ts:4 (statement) i += 1; -> ;',
    '4/4 survived  base/other.ts:1 (constant) 1 -> 2',
  ]);
  expect(lines.at(-1)).toBe('2 of 4 changes were not noticed: 50.0 %.');
  expect(status).toBe(0);
  expect(readFileSync(join(folder, 'base/count.ts'), 'utf8')).toBe(SOURCE);

  write('test/base/count.test.ts', testOf(4, 3));
  expect(mutate('base', '--survivors').lines.at(-1)).toBe('1 of 2 changes were not noticed: 50.0 %.');
  expect(mutate('nowhere')).toEqual({ status: 1, lines: ['There is no nowhere.'] });
});
