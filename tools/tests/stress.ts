/**
 * Runs test files many times while busy loops run, and prints what failed. What passes here does not count on
 * a quick machine.
 *
 *     npm run test:stress -- FILE... [--runs N] [--loops N]
 *
 * Exit code 1 if any run of a file failed, 2 if the command line is wrong.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readReport, type TestRun } from './report.js';
import { type FailureCount, failuresOf, isPassed } from './stress-result.js';
import { runVitest } from './test-runs.js';

/** Processes that take all the processor time that they get; they end with this process, however it ends. */
class BusyLoops {
  readonly #processes: readonly ChildProcess[];

  constructor(count: number) {
    const path = fileURLToPath(new URL('busy-loop.mjs', import.meta.url));
    this.#processes = Array.from({ length: count }, () => fork(path, { execArgv: [] }));
  }

  async stop(): Promise<void> {
    const running = this.#processes.filter(
      ({ exitCode, signalCode }) => exitCode === null && signalCode === null,
    );
    const ended = running.map((one) => once(one, 'exit'));
    for (const one of running) one.kill('SIGKILL');
    await Promise.all(ended);
  }
}

const USAGE = 'Usage: npm run test:stress -- FILE... [--runs 20] [--loops 4]';

function readCommandLine() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { runs: { type: 'string', default: '20' }, loops: { type: 'string', default: '4' } },
  });
  const whole = (name: 'runs' | 'loops', least: number) => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= least) return value;
    throw new Error(`--${name} must be a whole number from ${least}, not "${values[name]}".`);
  };
  if (positionals.length === 0) throw new Error('No test file is named.');
  const missing = positionals.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`There is no file ${missing}.`);
  return { files: positionals, runs: whole('runs', 1), loops: whole('loops', 0) };
}

/** Runs a file `count` times, and prints a line for each. */
function stress(file: string, count: number, folder: string): TestRun[] {
  return Array.from({ length: count }, (_, index) => {
    const path = join(folder, `${index}.json`);
    rmSync(path, { force: true });
    const begun = performance.now();
    const exitCode = runVitest([resolve(file)], path, 'ignore');
    const run = { name: file, exitCode, report: readReport(path) };
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(
      `${file}  run ${index + 1} of ${count}: ${isPassed(run) ? 'passed' : 'FAILED'} in ${seconds} s`,
    );
    return run;
  });
}

function printFailures(file: string, runs: readonly TestRun[]): void {
  const failed = runs.filter((run) => !isPassed(run)).length;
  console.log(`${file}: ${failed} of ${runs.length} runs failed.`);
  const failures: FailureCount[] = failuresOf(runs);
  for (const { what, count, error } of failures)
    console.log(`  ${count} times  ${what}\n    ${error.replaceAll('\n', '\n    ')}`);
}

let commandLine: ReturnType<typeof readCommandLine>;
try {
  commandLine = readCommandLine();
} catch (error) {
  console.error(`${(error as Error).message}\n${USAGE}`);
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'skein-stress-'));
const loops = new BusyLoops(commandLine.loops);
try {
  const results = commandLine.files.map((file) => ({ file, runs: stress(file, commandLine.runs, folder) }));
  for (const { file, runs } of results) printFailures(file, runs);
  process.exitCode = results.some(({ runs }) => !runs.every(isPassed)) ? 1 : 0;
} finally {
  await loops.stop();
  rmSync(folder, { recursive: true, force: true });
}
