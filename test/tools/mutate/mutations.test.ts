import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { mutantsOf, survivedByFile, unnoticed } from '../../../tools/mutate/mutants.js';
import { mutated, mutationsOf } from '../../../tools/mutate/mutations.js';
import { ImportGraph, testsOf } from '../../../tools/mutate/reachable-tests.js';
import { repository } from '../../support/documents.js';

/** A line for each mutation: `kind: before -> after`. */
function listed(source: string): string[] {
  return mutationsOf(source, 'a.ts').map(
    ({ kind, start, end, replacement }) => `${kind}: ${source.slice(start, end)} -> ${replacement}`,
  );
}

describe('mutations', () => {
  it.each<[string, string[]]>([
    ['x = a - b;', ['statement: x = a - b; -> ;', 'operator: - -> +']],
    ['const x = a < b;', ['comparison: < -> <=']],
    ['const x = a === b && c;', ['operator: && -> ||', 'comparison: === -> !==']],
    ['const x = a ?? b;', ['operator: a ?? b -> a']],
    ['const x = !a;', ['condition: !a -> a']],
    ['const x = -a;', ['operator: -a -> a']],
    ['for (; a; i++) break;', ['condition: a -> false', 'operator: i++ -> i--', 'statement: break; -> ;']],
    ['while (true) f();', ['constant: true -> false', 'statement: f(); -> ;']],
    ['if (a) b();', ['condition: a -> true', 'condition: a -> false', 'statement: b(); -> ;']],
    [
      'const x = a ? 0x10 : true;',
      ['condition: a -> true', 'condition: a -> false', 'constant: 0x10 -> 17', 'constant: true -> false'],
    ],
    ["throw new Error('at ' + 1);", ["statement: throw new Error('at ' + 1); -> ;"]],
  ])('of %s', (source, mutations) => {
    expect(listed(source)).toEqual(mutations);
  });

  it('leave types, imports, names and joined texts alone', () => {
    const source = `import a from 'a';
      type One = 1 | true;
      interface Two { two: 2 }
      const three = { 3: a as 3 };
      const four = 'four' + a + 'times';`;
    expect(listed(source)).toEqual([]);
  });

  it('parse, each of them, and say in which line they are', () => {
    for (const path of ['kvcache/block-cache.ts', 'src/generation/tools/call-reader.ts']) {
      const source = readFileSync(join(repository, path), 'utf8');
      const mutations = mutationsOf(source, path);
      expect(mutations.length).toBeGreaterThan(50);
      for (const mutation of mutations.filter((_, index) => index % 20 === 0)) {
        const text = mutated(source, mutation);
        const { parseDiagnostics } = ts.createSourceFile(path, text, ts.ScriptTarget.ESNext) as unknown as {
          parseDiagnostics: unknown[];
        };
        expect(parseDiagnostics, JSON.stringify(mutation)).toEqual([]);
        expect(source.slice(0, mutation.start).split('\n')).toHaveLength(mutation.line);
      }
    }
  });
});

describe('mutants', () => {
  const sources = [join(repository, 'kvcache/indexed-heap.ts')];

  it('are drawn by a seed, in the order of the source', () => {
    const all = mutantsOf(sources, Number.POSITIVE_INFINITY, 1);
    const some = mutantsOf(sources, 10, 1);
    expect(some).toHaveLength(10);
    expect(mutantsOf(sources, 10, 1)).toEqual(some);
    expect(mutantsOf(sources, 10, 2)).not.toEqual(some);
    expect(all.filter((one) => some.some((other) => JSON.stringify(other) === JSON.stringify(one)))).toEqual(
      some,
    );
  });

  it('are counted by file', () => {
    const mutant = (path: string) => ({ ...mutantsOf(sources, 1, 1)[0]!, path });
    const results = [
      { mutant: mutant('a.ts'), outcome: 'failed', failedTest: 'a: b' },
      { mutant: mutant('b.ts'), outcome: 'survived', failedTest: null },
      { mutant: mutant('b.ts'), outcome: 'died', failedTest: null },
      { mutant: mutant('c.ts'), outcome: 'untested', failedTest: null },
    ] as const;
    expect(unnoticed(results)).toEqual([results[1], results[3]]);
    expect(survivedByFile(results)).toEqual([
      { path: 'b.ts', survived: 1, of: 2 },
      { path: 'c.ts', survived: 1, of: 1 },
      { path: 'a.ts', survived: 0, of: 1 },
    ]);
  });

  it('have the tests that reach them, the nearest first', () => {
    const tests = [
      'test/kvcache/block-pool.test.ts',
      'test/kvcache/indexed-heap.test.ts',
      'test/base/columns.test.ts',
    ];
    const others = [
      'kvcache/indexed-heap.ts',
      'kvcache/block-pool.ts',
      'kvcache/block-cache.ts',
      'kvcache/priority-expiry.ts',
    ];
    const graph = new ImportGraph([...tests, ...others]);
    const chosen = testsOf('kvcache/indexed-heap.ts', tests, graph);
    expect(chosen[0]).toBe('test/kvcache/indexed-heap.test.ts');
    expect(chosen).not.toContain('test/base/columns.test.ts');
  });
});
