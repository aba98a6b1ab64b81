// Judges the runs of the tests: prints what failed or was flaky, and the line "N passed, N failed". The exit code is 1
// unless every test ran and passed, or at most two files that test/flaky.json does not list passed alone after they failed.
//
//     node --import tsx .ci/count-tests.mjs FOLDER NAME=EXIT_CODE...
//
// FOLDER holds a report NAME.json for each run of Vitest, which ended with EXIT_CODE, and second-runs.json of
// tools/tests/second-runs.ts. The flaky files are written to FOLDER/flaky.json, in the form of test/flaky.json.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRuns, readSecondRuns } from '../tools/tests/test-runs.ts';
import { judge, readKnown } from '../tools/tests/verdict.ts';

const [folder, ...runs] = process.argv.slice(2);
const known = readKnown('test/flaky.json');
const verdict = judge(readRuns(folder, runs), readSecondRuns(folder), known, {
  root: process.cwd(),
  date: new Date().toISOString().slice(0, 10),
});
const report = join(folder, 'flaky.json');
writeFileSync(report, `${JSON.stringify(verdict.flaky, null, 2)}\n`);

for (const problem of verdict.problems) console.log(problem);
for (const { file, error } of verdict.flaky) console.log(`FLAKY ${file}: ${error}`);
if (verdict.flaky.length > 0)
  console.log(`Add the entries of ${report} to test/flaky.json until they are mended.`);
if (!verdict.isOk) console.log('The run did not pass.');
console.log(`${verdict.passed} passed, ${verdict.failed} failed`);
process.exitCode = verdict.isOk ? 0 : 1;
