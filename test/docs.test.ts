import { existsSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CASES, clientPages } from './src/clients/pages/client-page.js';
import { pinnedNpm, pinnedPip } from './src/clients/pages/pinned-packages.js';
import { allDocuments, anchorsOf, readDocument, relativeLinks, repository } from './support/documents.js';

const documents = allDocuments();

/** The fault of a link, in words; null: it has none. */
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

  it('can be finished: pages are short, and all of them together', () => {
    /** Words that someone has written: tables that tools write are looked things up in. */
    const words = (path: string) =>
      readDocument(path)
        .replaceAll(/<!-- ([\w-]+) -->[\s\S]*?<!-- \/\1 -->/g, '')
        .split(/\s+/).length;
    const kinds: [pages: RegExp, each: number, together: number][] = [
      [/^(README|docs\/[^/]+|docs\/clients\/[^/]+)\.md$/, 2600, 42_500],
      [/^docs\/architecture\//, 2450, 29_500],
    ];
    for (const [pages, each, together] of kinds) {
      const counts = documents.filter((path) => pages.test(path)).map((path) => [path, words(path)] as const);
      expect(counts.length).toBeGreaterThan(20);
      expect(counts.filter(([, count]) => count > each)).toEqual([]);
      expect(counts.reduce((sum, [, count]) => sum + count, 0)).toBeLessThan(together);
    }
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

describe('pages of clients', () => {
  const index = readDocument('docs/clients/README.md');
  const rowOf = (name: string) =>
    index.split('\n').find((line) => line.startsWith('| [') && line.includes(`](${name}.md)`));

  it('are all in their index', () => {
    const names = documents.flatMap((path) => /^docs\/clients\/(?!README)(.+)\.md$/.exec(path)?.[1] ?? []);
    expect(names.length).toBeGreaterThan(12);
    expect(names.filter((name) => rowOf(name) === undefined)).toEqual([]);
  });

  it('have a program for each case with each connection, and catch no exception of everybody', () => {
    for (const page of clientPages()) {
      for (const connection of page.connections) {
        const wanting = Object.values(CASES).filter((heading) => page.program(connection, heading) === null);
        expect(wanting, `${page.name}.md in ${connection.language}`).toEqual([]);
        expect(page.program(connection, CASES.error)).not.toMatch(/except(:| Exception\b)/);
      }
    }
  });

  it('install packages of which the index names the versions that CI has', () => {
    const versions = { pip: new Map([...pinnedPip.newer, ...pinnedPip.older]), npm: pinnedNpm };
    for (const { name: page, packages } of clientPages()) {
      for (const manager of ['pip', 'npm'] as const) {
        for (const name of packages[manager]) {
          if (name === 'zod') continue; // A dependency of the server itself.
          const version = versions[manager].get(name);
          expect(version, `${name} of ${page}.md`).toMatch(/^\d[\w.]*$/);
          expect(rowOf(page)).toContain(`\`${name}\` ${version}`);
        }
      }
    }
  });
});

describe('BENCHMARKS.md', () => {
  const text = readDocument('BENCHMARKS.md');
  const cellsOf = (line: string) => line.slice(2, -2).split(' | ');
  const sectionOf = (name: string, of = text) =>
    of.split(`<!-- ${name} -->`)[1]?.split(`<!-- /${name} -->`)[0] ?? '';

  /** A ratio of a section: the row that begins so, in the column of that title. */
  function ratioOf(section: string, row: string, column: string, of = text): string | undefined {
    const lines = sectionOf(section, of).split('\n');
    const at = lines.findIndex((line) => line.startsWith(`| ${row} |`));
    const head = lines.slice(0, at).findLastIndex((line) => line.startsWith('| ---')) - 1;
    return cellsOf(lines[at] ?? '')[cellsOf(lines[head] ?? '').indexOf(column)];
  }

  const llama = 'skein int4 / llama.cpp, its best of no smaller weights';
  const openvino = 'skein int4 / openvino, its best';
  const ik = 'skein int4 / ik_llama.cpp, its best';
  const server = 'skein int4 / llama-server, its best';
  const ikServer = 'skein int4 / ik_llama-server, its best';
  const HEADLINES: [line: string, section: string, row: string, column: string][] = [
    ['llama.cpp, its best of no smaller weights: 1 sequence', 'compare', llama, 'generation 1 x 128'],
    ['32 sequences', 'compare', llama, 'generation 32 x 128'],
    ['64 sequences', 'compare', llama, 'generation 64 x 128'],
    ['a prompt of 1024 tokens', 'compare', llama, 'prefill 1024'],
    ['ik_llama.cpp, its best: 1 sequence', 'compare', ik, 'generation 1 x 128'],
    ['64 sequences', 'compare', ik, 'generation 64 x 128'],
    ['a prompt of 1024 tokens', 'compare', ik, 'prefill 1024'],
    ['OpenVINO GenAI, its best: 1 sequence', 'compare', openvino, 'generation 1 x 128'],
    ['64 sequences', 'compare', openvino, 'generation 64 x 128'],
    ['a prompt of 1024 tokens', 'compare', openvino, 'prefill 1024'],
    ['llama-server, tokens/s: 1 client', 'http-summary', `${server}: tokens/s`, '1 client'],
    ['64 clients', 'http-summary', `${server}: tokens/s`, '64 clients'],
    ['32 clients', 'http-summary', `${server}: tokens/s`, '32 clients'],
    ["ik_llama.cpp's server, tokens/s: 1 client", 'http-summary', `${ikServer}: tokens/s`, '1 client'],
    ['32 clients', 'http-summary', `${ikServer}: tokens/s`, '32 clients'],
    [
      'llama-server, time to the first token: 64 clients',
      'http-summary',
      `${server}: first token`,
      '64 clients',
    ],
  ];

  /** Measured with AVX-512 alone; their tables are in the laboratory. */
  const OF_LABORATORY: [line: string, document: string, section: string, row: string, column: string][] = [
    [
      "Triton's server with its Python backend, small tensors: 32 clients",
      'server',
      'infer',
      '32',
      'skein / triton',
    ],
    ['tensors of 1 MB: 8 clients', 'server', 'infer-large', '8', 'skein / triton'],
    ['MLServer, small tensors: 32 clients', 'server', 'infer', '32', 'skein / mlserver'],
    [
      '64 sequences with 2048 tokens each',
      'comparisons',
      'compare-long-avx512',
      llama,
      'generation 64 x 2048',
    ],
    [
      'ik_llama.cpp, 64 sequences that share 2048 tokens',
      'comparisons',
      'compare-long-avx512',
      ik,
      'generation 64 x 2048, shared',
    ],
    [
      'llama.cpp, 32 sequences with one LoRA adapter of all modules',
      'adapters',
      'adapters-avx512',
      'int4, Q4_0',
      'ratio',
    ],
  ];

  /** Lines of larger models, with the files in the tables of the laboratory. */
  const LARGER = [
    ['Llama of 1B', 'llama-1b.Q4_K_M'],
    ['Llama of 3B', 'llama-3b.Q4_K_M'],
    ['Llama of 8B', 'llama-8b.Q4_K_M'],
    ['Qwen3 of 4B', 'qwen3-4b.Q4_K_M'],
    ['Qwen3 of 30B, 3B of them for a token', 'qwen3-30b-a3b.Q4_K_M'],
  ] as const;

  it('is a page: 300 lines at most, what it shows first on the first screen', () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(300);
    const firstScreen = text.split('\n').slice(0, 40).join('\n');
    expect(firstScreen).toContain('npm run bench:compare');
    expect(firstScreen).toContain('llama-server');
    expect(firstScreen).toContain('](docs/lab/README.md)');
  });

  it('begins with ratios that its tables have', () => {
    const head = text.split('\n## ')[0]!.split('\n');
    for (const [line, section, row, column] of HEADLINES) {
      const found = head
        .filter((text) => text.startsWith(`| ${line} |`))
        .map((text) => cellsOf(text).slice(1));
      const ratios = ['avx2', 'avx512'].map((kind) => ratioOf(`${section}-${kind}`, row, column));
      expect(
        ratios.every((ratio) => /^\d+\.\d\dx$/.test(ratio ?? '')),
        `${line}: ${ratios}`,
      ).toBe(true);
      expect(found).toContainEqual(ratios);
    }
    const batching = 'batching in flight compared with static batching (V1), 8 requests/s';
    for (const [line, document, section, row, column] of OF_LABORATORY) {
      const ratio = ratioOf(section, row, column, readDocument(`docs/lab/${document}.md`))!;
      expect(head).toContain(`| ${line} | | ${ratio.replace(/x?$/, 'x')} |`);
    }
    const count = head.filter((text) => /^\|.*\dx \|/.test(text)).length;
    expect(count).toBe(HEADLINES.length + OF_LABORATORY.length + 1 + LARGER.length + 1);
    const rate = (scheme: string) =>
      Number(cellsOf(sectionOf('schemes').match(new RegExp(`^\\| 8 \\| ${scheme} .*$`, 'm'))![0])[2]);
    expect(head).toContain(`| ${batching} | ${(rate('InflightFusedBatching') / rate('V1')).toFixed(2)}x | |`);
  });

  it('has the ratios of larger models that the laboratory has', () => {
    const head = text.split('\n## ')[0]!.split('\n');
    const laboratory = readDocument('docs/lab/comparisons.md');
    const kinds = ['avx2', 'avx512'];
    /** With 1, 8 and 16 sequences; empty where a kind of machine has not had the model. */
    const ratiosOf = (kind: string, file: string) => {
      const shapes = sectionOf(`shapes-${kind}`, laboratory).split(/^(?=AMD EPYC)/m);
      const table = shapes.find((part) => part.includes(`; ${file}; 2 threads each`));
      const row = table?.match(/^\| skein Q4_K_M \/ ik_llama\.cpp, its best .*$/m)?.[0];
      return row === undefined ? '| |' : cellsOf(row).slice(1, 4).join(' | ');
    };
    for (const [line, file] of LARGER)
      expect(head).toContain(`| ${line} | ${kinds.map((kind) => ratiosOf(kind, file)).join(' | ')} |`);
    const overHttp = (kind: string) => {
      const row = sectionOf(`http-shape-${kind}`, laboratory).match(
        /^\| skein auto \/ ik_llama-server, its best: tokens\/s .*$/m,
      )![0];
      return cellsOf(row).slice(1, 3).join(' | ');
    };
    const both = kinds.map((kind) => `${overHttp(kind)} | |`).join(' ');
    expect(head).toContain(`| the 1B over HTTP: 1 and 8 clients | ${both}`);
  });

  it('has everything else in docs/lab, whose pages are all in its table', () => {
    const listed = relativeLinks('docs/lab/README.md').map(({ target }) => target);
    const pages = allDocuments('docs/lab').map((path) => posix.basename(path));
    expect(pages.length).toBeGreaterThan(8);
    expect(pages.filter((name) => name !== 'README.md' && !listed.includes(name))).toEqual([]);
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
    const named = Array.from(text.matchAll(/\bnpm run ([\w:-]+)/g), (match) => match[1]!);
    expect(new Set(named).size).toBeGreaterThan(3);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    expect(scripts).toMatchObject({ start: expect.any(String), test: expect.any(String) });
    const targets = Array.from(text.matchAll(/\bnpx vitest run (\S+)/g), (match) => match[1]!);
    expect(targets).toHaveLength(2);
    for (const path of targets) expect(existsSync(join(repository, path)), path).toBe(true);
  });
});
