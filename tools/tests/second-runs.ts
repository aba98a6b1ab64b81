/**
 * Runs each file with a failed test once more, alone. It judges nothing: .ci/count-tests.mjs does, by what this leaves.
 *
 *     tsx tools/tests/second-runs.ts FOLDER NAME=EXIT_CODE...
 *
 * FOLDER holds a report NAME.json for each run of Vitest, which ended with EXIT_CODE.
 */
import { readRuns, runAgain } from './test-runs.js';

const [folder, ...runs] = process.argv.slice(2);
if (folder === undefined || runs.length === 0)
  throw new Error('Usage: second-runs.ts FOLDER NAME=EXIT_CODE...');
runAgain(folder, readRuns(folder, runs));
