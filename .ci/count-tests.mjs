// Reads vitest's JSON report, prints what failed or was skipped and the line "N passed, N failed"; exit code 1 unless
// every test ran and passed.
//
//     node .ci/count-tests.mjs REPORT.json STATUS_OF_THE_RUN
import { readFileSync } from 'node:fs';

const [reportPath, runStatus] = process.argv.slice(2);

function readReport() {
  try {
    return JSON.parse(readFileSync(reportPath, 'utf8'));
  } catch {
    console.log('The test run left no report.');
    return { testResults: [] };
  }
}

const report = readReport();
let passed = 0;
let failed = 0;
let skipped = 0;
for (const file of report.testResults) {
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
const ok = passed > 0 && failed === 0 && skipped === 0 && Number(runStatus) === 0;
if (!ok) console.log(`The run did not pass (its exit code was ${runStatus}).`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = ok ? 0 : 1;
