// Runs bundled test files in this process and prints one line for each test that fails or is skipped, then one with the counts. Exit code
// 1 where a test failed or a file could not be run, or no test's name fits the pattern in SKEIN_TEST_NAMES; tests whose names do not fit are
// counted as not chosen.
import { type File, startTests, type Task, type VitestRunner } from '@vitest/runner';

const { SKEIN_TEST_NAMES: names } = process.env;

const pattern = names === undefined ? undefined : new RegExp(names);
const runner: VitestRunner = {
  config: {
    root: '/',
    name: undefined,
    setupFiles: [],
    passWithNoTests: false,
    allowOnly: false,
    testNamePattern: pattern,
    sequence: { hooks: 'stack', setupFiles: 'list', seed: 0, shuffle: false, concurrent: false } as never,
    chaiConfig: undefined,
    maxConcurrency: 1,
    testTimeout: 7_200_000,
    hookTimeout: 7_200_000,
    retry: 0,
    includeTaskLocation: false,
    diffOptions: undefined,
    tags: [],
    tagsFilter: undefined,
    strictTags: false,
  } as unknown as VitestRunner['config'],
  importFile: (path) => import(path),
};

const files = await startTests(process.argv.slice(2), runner);
const counts = { pass: 0, fail: 0, skip: 0, notChosen: 0 };
for (const file of files) count(file, []);
console.log(JSON.stringify(counts));
process.exit(counts.fail === 0 && counts.pass > 0 ? 0 : 1);

/** @param above the names of the suites around it */
function count(task: Task | File, above: readonly string[]): void {
  const names = task.type === 'suite' && 'filepath' in task ? [] : [...above, task.name];
  const { state = task.mode, errors = [] } = task.result ?? {};
  const isTest = task.type === 'test';
  if (isTest || errors.length > 0) {
    if (state === 'pass') counts.pass++;
    else if (state === 'fail') counts.fail++;
    else if (pattern?.test(names.join(' ')) === false) counts.notChosen++;
    else {
      counts.skip++;
      console.log(`SKIPPED ${names.join(' > ')}`);
    }
  }
  for (const { message, stack } of errors) console.log(`FAILED ${names.join(' > ')}\n${stack ?? message}`);
  if (!isTest && 'tasks' in task) for (const inner of task.tasks) count(inner, names);
}
