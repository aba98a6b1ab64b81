import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { testPython } from './test-python.js';

/** Folder of the programs of test/programs.txt: SKEIN_TEST_PROGRAMS, or `programs` in the environment of `testPython`. */
const folder =
  process.env.SKEIN_TEST_PROGRAMS ||
  (testPython === null ? null : join(dirname(dirname(testPython)), 'programs'));

/** Path of a program that tools/clients/fetch-programs.sh fetches; null where it is not there. @throws in CI. */
export function testProgram(name: string): string | null {
  const path = folder === null ? null : join(folder, name);
  if (path !== null && existsSync(path)) return path;
  if (process.env.CI === 'true')
    throw new Error(`The tests of ${name} need it in ${folder ?? 'SKEIN_TEST_PROGRAMS'}; see .ci/run.`);
  return null;
}
