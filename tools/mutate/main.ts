/**
 * Changes the sources of a folder one at a time, runs the tests that belong to it, and reports which changes no test noticed.
 *
 *     npm run test:mutate -- FOLDER
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { FLOORS } from '../support/floors.js';
import { MutantRunner } from './mutant-runner.js';
import { described, type Mutant, mutantsOf, type Result, survivedByFile, unnoticed } from './mutants.js';
import { mutated } from './mutations.js';
import { ImportGraph, testsOf } from './reachable-tests.js';

const HELP = `Usage: npm run test:mutate -- FOLDER [options]

  --sample N       mutants, drawn from all of the folder (default: 100)
  --seed N         of the draw (default: 1)
  --tests PATH     a folder or file of tests (may be given more than once; default: test/FOLDER)
  --without TEXT   leaves out tests whose path contains it (may be given more than once)
  --survivors      only the mutants that the last run of the folder left unnoticed`;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean' },
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    tests: { type: 'string', multiple: true },
    without: { type: 'string', multiple: true, default: [] },
    survivors: { type: 'boolean', default: false },
  },
});

/** TypeScript below a folder, from the repository's root. */
function sourcesIn(folder: string): string[] {
  if (!existsSync(folder)) throw new Error(`There is no ${folder}.`);
  if (folder.endsWith('.ts')) return [folder];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'))
    .map((path) => join(folder, path))
    .toSorted();
}

function wholeNumber(name: 'sample' | 'seed', least: number): number {
  const value = Number(flags[name]);
  if (Number.isInteger(value) && value >= least) return value;
  throw new Error(`--${name} must be a whole number from ${least}, not "${flags[name]}".`);
}

/** Milliseconds of processor time that a test file may take with a mutant. */
const limitOf = (tookMs: number) => 3000 + 4 * tookMs;

/** Runs the tests without a mutant. @returns milliseconds of each @throws Error if one fails, since no result would count then */
async function runWithout(
  runner: MutantRunner,
  tests: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { outcome, took, failedTest } = await runner.run(new Map(tests.map((test) => [test, 3_600_000])));
  if (outcome === 'survived') return took;
  throw new Error(`The tests fail without a mutant: ${failedTest ?? 'their process died'}.`);
}

/** Runs each mutant with the tests that reach its file, quick tests first within the nearest and within the others. */
async function runMutants(mutants: readonly Mutant[], tests: readonly string[]): Promise<Result[]> {
  const graph = new ImportGraph([...FLOORS, 'test'].filter((room) => existsSync(room)).flatMap(sourcesIn));
  const runner = await MutantRunner.start(tests);
  try {
    const took = await runWithout(runner, tests);
    const quickFirst = tests.toSorted((a, b) => took.get(a)! - took.get(b)!);
    const sources = new Map(mutants.map(({ path }) => [path, readFileSync(path, 'utf8')]));
    const results: Result[] = [];
    for (const mutant of mutants) {
      const chosen = testsOf(mutant.path, quickFirst, graph);
      const limits = new Map(chosen.map((test) => [test, limitOf(took.get(test)!)]));
      const text = mutated(sources.get(mutant.path)!, mutant);
      const run = chosen.length === 0 ? null : await runner.run(limits, { path: resolve(mutant.path), text });
      const result = {
        mutant,
        outcome: run?.outcome ?? 'untested',
        failedTest: run?.failedTest ?? null,
      } as const;
      results.push(result);
      console.log(`${results.length}/${mutants.length} ${result.outcome.padEnd(9)} ${described(mutant)}`);
      if (result.failedTest !== null) console.log(`    ${result.failedTest}`);
    }
    await runWithout(runner, tests);
    return results;
  } finally {
    await runner.close();
  }
}

function print(folder: string, results: readonly Result[]): void {
  const survived = unnoticed(results);
  console.log(`\nNo test noticed, in ${folder}:`);
  for (const { mutant, outcome } of survived) console.log(`  ${outcome.padEnd(9)} ${described(mutant)}`);
  console.log('\nunnoticed   of  file');
  for (const { path, survived, of } of survivedByFile(results)) {
    console.log(`${String(survived).padStart(9)}${String(of).padStart(5)}  ${path}`);
  }
  const share = ((100 * survived.length) / results.length).toFixed(1);
  console.log(`\n${survived.length} of ${results.length} changes were not noticed: ${share} %.`);
}

async function main(): Promise<void> {
  const [folder] = positionals;
  if (flags.help || folder === undefined) {
    console.log(HELP);
    process.exitCode = flags.help ? 0 : 2;
    return;
  }
  const path = folder.replace(/\/+$/, '');
  const sources = sourcesIn(path);
  const tests = (flags.tests ?? [join('test', path)])
    .flatMap(sourcesIn)
    .filter((test) => test.endsWith('.test.ts') && !flags.without.some((text) => test.includes(text)));
  if (tests.length === 0) throw new Error('There are no tests for it: name some by --tests.');
  const report = join('build/mutants', `${path.replaceAll('/', '-')}.json`);
  const mutants = flags.survivors
    ? unnoticed(JSON.parse(readFileSync(report, 'utf8')) as Result[]).map(({ mutant }) => mutant)
    : mutantsOf(sources, wholeNumber('sample', 1), wholeNumber('seed', 0));
  const results = await runMutants(mutants, tests);
  mkdirSync(dirname(report), { recursive: true });
  writeFileSync(report, JSON.stringify(results));
  print(path, results);
  // Vitest sets it for each mutant that was noticed.
  process.exitCode = 0;
}

try {
  await main();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
