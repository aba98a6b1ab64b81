import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  BaseSequencer,
  createVitest,
  type TestModule,
  type TestSpecification,
  type Vitest,
} from 'vitest/node';

/** What the tests made of a mutant: one failed, their process died or ran out of time, or all passed. */
export type Outcome = 'failed' | 'died' | 'survived';

/** What a run of the tests came to. */
export interface Run {
  readonly outcome: Outcome;
  /** Milliseconds of each test file. */
  readonly took: ReadonlyMap<string, number>;
  /** The file and the name of the failed test, if one failed. */
  readonly failedTest: string | null;
}

/** A source that tests see in place of the one on the disk. */
export interface Replacement {
  /** Absolute path. */
  readonly path: string;
  readonly text: string;
}

/** Keeps the order of the tests: the nearest ones come first. */
class GivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files;
  }
}

const besides = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/**
 * Runs tests with one source replaced, in one Vitest that stays; no file is changed. The tests of a run share a process,
 * which ends at the first failed test, or when its time is over.
 */
export class MutantRunner {
  readonly #vitest: Vitest;
  readonly #current: { replacement: Replacement | null };

  private constructor(vitest: Vitest, current: { replacement: Replacement | null }) {
    this.#vitest = vitest;
    this.#current = current;
  }

  /** @param tests all test files that will be asked for, from the repository's root */
  static async start(tests: readonly string[]): Promise<MutantRunner> {
    const current: { replacement: Replacement | null } = { replacement: null };
    const vitest = await createVitest(
      'test',
      {
        config: false,
        include: [...tests],
        watch: false,
        reporters: [{}],
        pool: 'forks',
        maxWorkers: 1,
        isolate: false,
        bail: 1,
        setupFiles: ['test/support/property-seed.ts', besides('watchdog.mjs')],
        execArgv: ['--max-old-space-size=2048'],
        testTimeout: 600_000,
        hookTimeout: 600_000,
        sequence: { sequencer: GivenOrder },
      },
      {
        plugins: [
          {
            name: 'mutant',
            enforce: 'pre',
            load: (id: string) => (id === current.replacement?.path ? current.replacement.text : null),
          },
        ],
      },
    );
    return new MutantRunner(vitest, current);
  }

  /**
   * Runs tests until one fails.
   *
   * @param limits milliseconds of processor time for each test file, from the repository's root; it may take ten times as
   * long by the clock
   * @returns also the milliseconds that each file took, and the test that failed
   */
  async run(limits: ReadonlyMap<string, number>, replacement: Replacement | null = null): Promise<Run> {
    const paths = Array.from(limits, ([test, limit]) => [resolve(test), limit] as const);
    process.env.SKEIN_TEST_MUTANT_LIMITS = JSON.stringify(Object.fromEntries(paths));
    for (const one of [this.#current.replacement, replacement])
      if (one !== null) this.#vitest.invalidateFile(one.path);
    this.#current.replacement = replacement;
    const known = await this.#vitest.globTestSpecifications();
    const chosen = paths.map(([path]) => known.find(({ moduleId }) => moduleId === path)!);
    // Otherwise the results of files that this run leaves out, or does not come to, would be those of runs before.
    this.#vitest.state.filesMap.clear();
    const { testModules, unhandledErrors } = await this.#vitest.runTestSpecifications(chosen);
    const took = testModules.map((one) => [relative('.', one.moduleId), one.diagnostic().duration] as const);
    const failed = testModules.find((one) => one.state() === 'failed');
    const outcome = failed ? 'failed' : unhandledErrors.length > 0 ? 'died' : 'survived';
    return { outcome, took: new Map(took), failedTest: failed === undefined ? null : nameOfFailed(failed) };
  }

  async close(): Promise<void> {
    await this.#vitest.close();
  }
}

function nameOfFailed(module: TestModule): string {
  const [test] = module.children.allTests('failed');
  return `${relative('.', module.moduleId)}: ${(test?.fullName ?? 'it does not load').split('\n', 1)[0]}`;
}
