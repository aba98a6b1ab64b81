/**
 * Runs the property tests with a seed of the day, so that they try other inputs than those of every run.
 *
 *     npm run test:drawn [-- FILE...]
 *
 * SKEIN_TEST_SEED names another seed. The exit code is Vitest's.
 */
import { join } from 'node:path';
import { propertyTestsIn, seedOf } from './property-tests.js';
import { REPORTS, runVitest } from './test-runs.js';

process.env.SKEIN_TEST_SEED ??= String(seedOf(new Date()));
const seed = process.env.SKEIN_TEST_SEED;
const named = process.argv.slice(2);
const files = named.length > 0 ? named : propertyTestsIn('test');
console.log(`${files.length} files of property tests with SKEIN_TEST_SEED=${seed}`);
process.exitCode = runVitest(files, join(REPORTS, 'drawn.json'));
if (process.exitCode !== 0) console.log(`To see it again: SKEIN_TEST_SEED=${seed} npx vitest run FILE`);
