/**
 * Lists the slowest files and tests of the last `npm test`, `npm run test:all` or `.ci/run`.
 *
 *     npm run test:times -- [--count N]
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readReport } from './report.js';
import { ofLastRun, slowestFiles, slowestTests } from './slowest.js';
import { REPORTS } from './test-runs.js';

const { values: flags } = parseArgs({ options: { count: { type: 'string', default: '30' } } });
const count = Number(flags.count);
if (!(Number.isInteger(count) && count > 0)) {
  console.error(`--count must be a whole number from 1, not "${flags.count}".`);
  process.exit(2);
}

const [first, more] = ['test', 'more'].map((name) => readReport(join(REPORTS, `${name}.json`)));
if (!first) {
  console.error(`${REPORTS} has no report of a test run: run npm test first.`);
  process.exit(1);
}

const reports = ofLastRun(first, more ? [more] : []);
const files = slowestFiles(reports, process.cwd());
const seconds = (ms: number) => (ms / 1000).toFixed(1).padStart(9);
const row = (times: readonly number[], name: string) =>
  console.log(`${times.map(seconds).join('')}  ${name}`);
const sum = (of: 'ms' | 'importMs' | 'processorMs') => files.reduce((total, file) => total + file[of], 0);

console.log(
  `Seconds in the run of ${new Date(first.startTime).toISOString()}, in which several files ran at a time.\n`,
);
console.log('processor    tests  imports  file');
for (const { name, ms, importMs, processorMs } of files.slice(0, count))
  row([processorMs, ms, importMs], name);
row([sum('processorMs'), sum('ms'), sum('importMs')], `all ${files.length} files`);
console.log('\n     test');
for (const { name, ms } of slowestTests(reports, process.cwd()).slice(0, count))
  console.log(`${seconds(ms)}  ${name}`);
