import { existsSync } from 'node:fs';
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
