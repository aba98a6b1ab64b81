import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\bnew URL\(\s*)['"](\.{1,2}\/[^'"]+)['"]/g;

/** Which modules a module imports, by its text; each file is read once. */
export class ImportGraph {
  readonly #imports = new Map<string, readonly string[]>();
  readonly #exists: (path: string) => boolean;

  /** @param files all sources of the repository, from its root */
  constructor(files: Iterable<string>) {
    const known = new Set(files);
    this.#exists = (path) => known.has(path);
  }

  /** The files that a file needs, itself among them. */
  reachedFrom(path: string): Set<string> {
    const reached = new Set([path]);
    for (const one of reached) for (const next of this.#importsOf(one)) reached.add(next);
    return reached;
  }

  #importsOf(path: string): readonly string[] {
    const known = this.#imports.get(path);
    if (known !== undefined) return known;
    const targets = Array.from(readFileSync(path, 'utf8').matchAll(IMPORT), ([, name]) =>
      posix.join(posix.dirname(path), name!),
    );
    const imports = targets
      .map((target) => [target.replace(/\.js$/, '.ts'), target].find(this.#exists))
      .filter((target) => target !== undefined);
    this.#imports.set(path, imports);
    return imports;
  }
}

/** The tests that reach a source, those that are named after it or its folder first. */
export function testsOf(source: string, tests: readonly string[], graph: ImportGraph): string[] {
  const name = source.replace(/\.ts$/, '');
  const nearness = (test: string) => {
    if (test === `test/${name}.test.ts`) return 0;
    return test.startsWith(`test/${posix.dirname(name)}/`) ? 1 : 2;
  };
  return tests
    .filter((test) => graph.reachedFrom(test).has(source))
    .toSorted((a, b) => nearness(a) - nearness(b));
}
