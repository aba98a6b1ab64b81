import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { testPython } from '../src/support/test-python.js';

/**
 * Folder of published chat templates, which tools/reference/templates/fetch.py fills: SKEIN_TEST_TEMPLATES, or `templates` in the
 * environment of `testPython`; null where there is none.
 */
export const templatesFolder: string | null = found();

/** Folder with the tokenizer of gpt-oss in it; null where there is none. */
export const gptOssTokenizer: string | null = tokenizerIn(templatesFolder);

function tokenizerIn(templates: string | null): string | null {
  const folder = templates === null ? null : join(templates, 'gptoss');
  if (folder === null || existsSync(join(folder, 'tokenizer.json'))) return folder;
  if (process.env.CI === 'true')
    throw new Error(`The tests of gpt-oss's prompts need ${folder}; see .ci/run.`);
  console.warn(`No tokenizer of gpt-oss in ${folder}: its tests are skipped.`);
  return null;
}

function found(): string | null {
  const folder =
    process.env.SKEIN_TEST_TEMPLATES ||
    (testPython === null ? null : join(dirname(dirname(testPython)), 'templates'));
  if (folder !== null && existsSync(join(folder, 'list.json'))) return folder;
  if (process.env.CI === 'true')
    throw new Error('The tests of published templates need SKEIN_TEST_TEMPLATES; see .ci/run.');
  console.warn('No folder of published chat templates (SKEIN_TEST_TEMPLATES): their tests are skipped.');
  return null;
}
