import { JsonReporter, type SerializedError, type TestModule } from 'vitest/node';
import type { FileResult, TestReport } from './report.js';

/**
 * Vitest's JSON report, with what it leaves out: errors outside of tests, the project of each file, and the time, also of processors,
 * that the file's imports and tests took.
 *
 *     vitest run --reporter=./tools/tests/reporter.ts --outputFile.json=REPORT.json
 */
export default class TestReporter extends JsonReporter {
  #modules: ReadonlyMap<string, TestModule> = new Map();
  #errors: string[] = [];

  constructor(options: ConstructorParameters<typeof JsonReporter>[0] = {}) {
    super(options);
  }

  override async onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[] = [],
  ): Promise<void> {
    this.#modules = new Map(modules.map((module) => [module.moduleId, module]));
    this.#errors = unhandled.map(textOf);
    await super.onTestRunEnd([...modules]);
  }

  override async writeReport(text: string): Promise<void> {
    const report = JSON.parse(text) as Omit<TestReport, 'unhandledErrors'>;
    const testResults = report.testResults.map((file) => ({ ...file, ...this.#factsOf(file.name) }));
    const whole: TestReport = { ...report, testResults, unhandledErrors: this.#errors };
    await super.writeReport(JSON.stringify(whole));
  }

  #factsOf(path: string) {
    const module = this.#modules.get(path);
    if (module === undefined) return {};
    const { environmentSetupDuration, prepareDuration, setupDuration, collectDuration, duration } =
      module.diagnostic();
    return {
      project: module.project.name,
      importMs: environmentSetupDuration + prepareDuration + setupDuration + collectDuration,
      testMs: duration,
      ...(module.meta() as Pick<FileResult, 'processorMs'>),
    };
  }
}

function textOf(error: SerializedError): string {
  const cause = error.cause as SerializedError | undefined;
  return cause?.message === undefined ? error.message : `${error.message} ${cause.message}`;
}
