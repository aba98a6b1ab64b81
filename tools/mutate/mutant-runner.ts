import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, createVitest, type TestSpecification, type Vitest } from 'vitest/node';

/** What the tests made of a mutant: one failed, their process died or ran out of time, or all passed. */
export type Outcome = 'failed' | 'died' | 'survived';

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
   * @returns also the milliseconds that each file took
   */
  async run(
    limits: ReadonlyMap<string, number>,
    replacement: Replacement | null = null,
  ): Promise<{ outcome: Outcome; took: Map<string, number> }> {
    const paths = Array.from(limits, ([test, limit]) => [resolve(test), limit] as const);
    process.env.SKEIN_MUTANT_LIMITS = JSON.stringify(Object.fromEntries(paths));
    for (const one of [this.#current.replacement, replacement])
      if (one !== null) this.#vitest.invalidateFile(one.path);
    this.#current.replacement = replacement;
    const known = await this.#vitest.globTestSpecifications();
    const chosen = paths.map(([path]) => known.find(({ moduleId }) => moduleId === path)!);
    const { testModules, unhandledErrors } = await this.#vitest.runTestSpecifications(chosen);
    const took = testModules.map((one) => [relative('.', one.moduleId), one.diagnostic().duration] as const);
    const isFailed = testModules.some((one) => one.state() === 'failed');
    const outcome = isFailed ? 'failed' : unhandledErrors.length > 0 ? 'died' : 'survived';
    return { outcome, took: new Map(took) };
  }

  async close(): Promise<void> {
    await this.#vitest.close();
  }
}
