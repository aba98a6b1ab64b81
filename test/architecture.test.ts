import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
const [, section = ''] = text.split('## The batch manager, statement by statement');
const rows = section
  .split('\n## ')[0]!
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .slice(1)
  .map((line) => line.split('|').slice(1, -1));
const paths = (cell: string) => Array.from(cell.matchAll(/`([^`]+)`/g), (match) => match[1]!);

describe('the table of statements', () => {
  it('has a row for each, with code and a test', () => {
    expect(rows.length).toBeGreaterThan(30);
    for (const [statement, code, tests] of rows) {
      expect(paths(code!), statement).not.toEqual([]);
      expect(paths(tests!), statement).not.toEqual([]);
      for (const path of paths(tests!)) expect(path, statement).toMatch(/^test\/.*\.test\.ts$/);
    }
  });

  it('names only files that there are', () => {
    const missing = rows.flatMap(([, code, tests]) => [...paths(code!), ...paths(tests!)]);
    expect(missing.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
