import { existsSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allDocuments, anchorsOf, readDocument, relativeLinks, repository } from './support/documents.js';

const documents = allDocuments();

/** What is wrong with a link, or nothing. */
function problemOf(from: string, target: string): string | null {
  const [path, anchor] = target.split('#', 2) as [string, string | undefined];
  const file = path === '' ? from : posix.join(posix.dirname(from), decodeURI(path));
  if (file.startsWith('..') || !existsSync(join(repository, file))) return `${from}: ${target}: no ${file}`;
  if (anchor === undefined) return null;
  if (!file.endsWith('.md')) return `${from}: ${target}: an anchor in what is no document`;
  return anchorsOf(file).has(anchor) ? null : `${from}: ${target}: ${file} has no heading #${anchor}`;
}

describe('documents', () => {
  it('have links that lead to files and headings that there are', () => {
    const links = documents.flatMap(relativeLinks);
    expect(links.length).toBeGreaterThan(60);
    expect(links.map(({ from, target }) => problemOf(from, target)).filter(Boolean)).toEqual([]);
  });

  it('name broken links (the check itself)', () => {
    expect(problemOf('docs/README.md', 'nowhere.md')).toContain('no docs/nowhere.md');
    expect(problemOf('docs/README.md', '../../secret')).toContain('no ../secret');
    expect(problemOf('docs/README.md', 'api.md#nothing')).toContain('no heading #nothing');
    expect(problemOf('README.md', '#nothing')).toContain('README.md has no heading #nothing');
    expect(problemOf('docs/README.md', 'api.md#responses')).toBeNull();
  });

  it('of docs/ are all in its table of contents, and say in their heading what they are about', () => {
    const listed = new Set(relativeLinks('docs/README.md').map(({ target }) => target.split('#', 1)[0]));
    const pages = documents.filter((path) => /^docs\/[^/]+\.md$/.test(path) && path !== 'docs/README.md');
    expect(pages.length).toBeGreaterThan(10);
    expect(pages.filter((path) => !listed.has(posix.basename(path)))).toEqual([]);
    for (const path of pages) expect(readDocument(path)).toMatch(/^# \S.*\n\n/);
  });

  it('a newcomer meets first are no longer than a few screens', () => {
    expect(readDocument('README.md').split('\n').length).toBeLessThan(200);
    expect(statSync(join(repository, 'README.md')).size).toBeLessThan(16_000);
  });
});

describe('CONTRIBUTING.md', () => {
  const text = readDocument('CONTRIBUTING.md');
  const { scripts } = JSON.parse(readDocument('package.json')) as { scripts: Record<string, string> };

  it('names files and folders that there are', () => {
    const words = Array.from(text.matchAll(/`([^`\n]+)`/g), (match) => match[1]!);
    const paths = words.filter((word) =>
      /^(\.ci|src|engine|models|scheduler|test|tools)\/[\w./-]+$/.test(word),
    );
    expect(paths.length).toBeGreaterThan(15);
    expect(paths.filter((path) => !existsSync(join(repository, path)))).toEqual([]);
    // Files named after the folder they are in, in the same paragraph.
    const kernels = words.filter((word) => /^\w+\.(cpp|h)$/.test(word));
    const folders = ['engine/executors/native/executor', 'engine/executors/native/kernels'];
    const isThere = (name: string) => folders.some((folder) => existsSync(join(repository, folder, name)));
    expect(kernels.length).toBeGreaterThan(8);
    expect(kernels.filter((name) => !isThere(name))).toEqual([]);
  });

  it('has commands that there are', () => {
    const named = Array.from(text.matchAll(/\bnpm run ([\w:]+)/g), (match) => match[1]!);
    expect(new Set(named).size).toBeGreaterThan(3);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    expect(scripts).toMatchObject({ start: expect.any(String), test: expect.any(String) });
    const targets = Array.from(text.matchAll(/\bnpx vitest run (\S+)/g), (match) => match[1]!);
    expect(targets).toHaveLength(2);
    for (const path of targets) expect(existsSync(join(repository, path)), path).toBe(true);
  });
});
