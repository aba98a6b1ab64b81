import { readFileSync } from 'node:fs';
import { Random } from '../support/random.js';
import type { Outcome } from './mutant-runner.js';
import { type Mutation, mutationsOf } from './mutations.js';

/** A mutation and the file that it changes, from the repository's root. */
export interface Mutant extends Mutation {
  readonly path: string;
}

/** A mutant and what its tests made of it. */
export interface Result {
  readonly mutant: Mutant;
  readonly outcome: Outcome | 'untested';
  /** The test that noticed it, if one failed. */
  readonly failedTest: string | null;
}

/** The mutants of these sources: all of them, or as many as `sample`, drawn by `seed`, in the order of the sources. */
export function mutantsOf(sources: readonly string[], sample: number, seed: number): Mutant[] {
  const all = sources.flatMap((path) =>
    mutationsOf(readFileSync(path, 'utf8'), path).map((mutation) => ({ path, ...mutation })),
  );
  if (all.length <= sample) return all;
  const chosen = new Set(new Random(seed).permutation(all.length).slice(0, sample));
  return all.filter((_, index) => chosen.has(index));
}

/** A line for people: where the mutant is, and what it changes. */
export function described({ path, line, kind, start, end, replacement }: Mutant): string {
  const shown = (text: string) =>
    (text.length > 60 ? `${text.slice(0, 57)}...` : text).replaceAll(/\s+/g, ' ');
  const before = shown(readFileSync(path, 'utf8').slice(start, end));
  return `${path}:${line} (${kind}) ${before} -> ${shown(replacement)}`;
}

/** How many mutants of each file no test noticed, and of all; the files with the most unnoticed ones first. */
export function survivedByFile(results: readonly Result[]): { path: string; survived: number; of: number }[] {
  const paths = [...new Set(results.map(({ mutant }) => mutant.path))];
  return paths
    .map((path) => {
      const ofFile = results.filter(({ mutant }) => mutant.path === path);
      return { path, survived: unnoticed(ofFile).length, of: ofFile.length };
    })
    .toSorted((a, b) => b.survived - a.survived);
}

/** Those that no test noticed. */
export function unnoticed(results: readonly Result[]): Result[] {
  return results.filter(({ outcome }) => outcome === 'survived' || outcome === 'untested');
}
