import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FLOORS } from '../tools/support/floors.js';
import { allDocuments, proseOf, readDocument, relativeLinks, repository } from './support/documents.js';

const pages = allDocuments('docs/architecture');
const wordsOf = (text: string) => Array.from(text.matchAll(/`([^`\n]+)`/g), (match) => match[1]!);

describe('ARCHITECTURE.md', () => {
  it('is a map that leads to every page of docs/architecture', () => {
    const linked = new Set(relativeLinks('ARCHITECTURE.md').map(({ target }) => target.split('#', 1)[0]));
    expect(pages.length).toBeGreaterThan(15);
    expect(pages.filter((path) => !linked.has(path))).toEqual([]);
    expect(readDocument('ARCHITECTURE.md').split('\n').length).toBeLessThan(300);
    for (const path of pages) expect(readDocument(path), path).toMatch(/^# \S.*\n\n/);
  });

  it('and its pages name sources that there are', () => {
    const rooms = [...FLOORS, 'test'];
    const files = rooms.flatMap((room) =>
      readdirSync(join(repository, room), { recursive: true, encoding: 'utf8' }).map(
        (path) => `/${room}/${path}`,
      ),
    );
    const named = ['ARCHITECTURE.md', ...pages].flatMap((document) =>
      wordsOf(proseOf(document))
        .filter((word) => /^[\w@][\w/@.-]*\.(ts|cpp|h|mjs)$/.test(word))
        .map((name) => ({ document, name })),
    );
    expect(named.length).toBeGreaterThan(200);
    expect(named.filter(({ name }) => !files.some((path) => path.endsWith(`/${name}`)))).toEqual([]);
  });
});

describe('the table of statements', () => {
  const [, section = ''] = readDocument('docs/architecture/batch-manager.md').split(
    '## Statement by statement',
  );
  const rows = section
    .split('\n## ')[0]!
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.split('|').slice(1, -1));

  it('has a row for each, with code and a test', () => {
    expect(rows.length).toBeGreaterThan(30);
    for (const [statement, code, tests] of rows) {
      expect(wordsOf(code!), statement).not.toEqual([]);
      expect(wordsOf(tests!), statement).not.toEqual([]);
      for (const path of wordsOf(tests!)) expect(path, statement).toMatch(/^test\/.*\.test\.ts$/);
    }
  });

  it('names only files that there are', () => {
    const missing = rows.flatMap(([, code, tests]) => [...wordsOf(code!), ...wordsOf(tests!)]);
    expect(missing.filter((path) => !existsSync(join(repository, path)))).toEqual([]);
  });
});
