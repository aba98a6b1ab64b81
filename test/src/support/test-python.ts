import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const venvPython = fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));

/** A Python that has the openai package: SKEIN_TEST_PYTHON, or a virtual environment in the repository's folder. */
export const testPython: string | null =
  process.env.SKEIN_TEST_PYTHON || (existsSync(venvPython) ? venvPython : null);

if (testPython === null && process.env.CI === 'true') {
  throw new Error('The tests of the openai package from pip need SKEIN_TEST_PYTHON or .venv; see .ci/run.');
}
if (testPython === null) {
  console.warn('No Python with the openai package (SKEIN_TEST_PYTHON or .venv): its tests are skipped.');
}

const olderPath = testPython === null ? '' : join(dirname(dirname(testPython)), 'openai-2/bin/python');

/** A Python that has version 2 of the openai package, for clients that need it: in the folder `openai-2` of the environment of `testPython`. */
export const testPythonWithOpenai2: string | null = existsSync(olderPath) ? olderPath : null;

if (testPythonWithOpenai2 === null && process.env.CI === 'true') {
  throw new Error(`The tests of clients of the openai package 2 need ${olderPath}; see .ci/run.`);
}
