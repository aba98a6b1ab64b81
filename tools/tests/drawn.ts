/**
 * Runs the property tests with a seed of the day and five times as often, so that they try other and more inputs than every run.
 *
 *     npm run test:drawn [-- FILE...]
 *
 * SKEIN_TEST_SEED names another seed, SKEIN_TEST_DRAWS another factor. The exit code is Vitest's.
 */
import { join } from 'node:path';
import { propertyTestsIn, seedOf } from './property-tests.js';
import { REPORTS, runVitest } from './test-runs.js';

process.env.SKEIN_TEST_SEED ??= String(seedOf(new Date()));
process.env.SKEIN_TEST_DRAWS ??= '5';
const { SKEIN_TEST_SEED: seed, SKEIN_TEST_DRAWS: factor } = process.env;
const named = process.argv.slice(2);
const files = named.length > 0 ? named : propertyTestsIn('test');
console.log(
  `${files.length} files of property tests with SKEIN_TEST_SEED=${seed} SKEIN_TEST_DRAWS=${factor}`,
);
process.exitCode = runVitest(files, join(REPORTS, 'drawn.json'));
if (process.exitCode !== 0) {
  console.log(`To see it again: SKEIN_TEST_SEED=${seed} SKEIN_TEST_DRAWS=${factor} npx vitest run FILE`);
}
