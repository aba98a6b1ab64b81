// Reads vitest's JSON reports, prints what failed or was skipped and the line "N passed, N failed"; exit code 1 unless
// every test ran and passed.
//
//     node .ci/count-tests.mjs STATUS_OF_THE_RUNS REPORT.json...
import { readFileSync } from 'node:fs';

const [runStatus, ...reportPaths] = process.argv.slice(2);

let isComplete = reportPaths.length > 0;

function resultsOf(reportPath) {
  try {
    return JSON.parse(readFileSync(reportPath, 'utf8')).testResults;
  } catch {
    console.log('A test run left no report.');
    isComplete = false;
    return [];
  }
}

let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of reportPaths.flatMap(resultsOf)) {
  // A file that does not load has no tests of its own: it counts as one that failed.
  if (file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')) {
    failed++;
    console.log(`FAILED ${file.name}: ${file.message}`);
  }
  for (const test of file.assertionResults) {
    if (test.status === 'passed') passed++;
    else if (test.status === 'failed') failed++;
    else {
      skipped++;
      console.log(`NOT RUN ${file.name}: ${test.fullName}`);
    }
  }
}
if (skipped > 0) console.log(`${skipped} tests were skipped; here none may be.`);
const ok = isComplete && passed > 0 && failed === 0 && skipped === 0 && Number(runStatus) === 0;
if (!ok) console.log(`The run did not pass (its exit code was ${runStatus}).`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = ok ? 0 : 1;
