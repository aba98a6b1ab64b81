import { appendFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { runOwnBenchmark } from '../../loadgen/benchmark.js';
import { type BenchReport, InputError, isThisMachine } from '../../loadgen/index.js';
import { CSV_HEAD, csvLines } from '../../loadgen/report/csv.js';
import { htmlReport } from '../../loadgen/report/html.js';
import { LiveView } from '../../loadgen/report/live.js';
import { coloured, headLines, plain, runSummary, sweepSummary } from '../../loadgen/report/terminal.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { type BenchFlags, benchOptionsOf } from './bench-flags.js';
import { quickBench } from './bench-quick.js';

/** Signals that end the run; a second one does not wait for the report. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs skein bench URL.
 * @throws UsageError for flags that are wrong, Error where the server does not answer or the run was cut off.
 */
export async function bench(url: string, flags: BenchFlags): Promise<void> {
  if (flags.quick) return await quick(url, flags);
  const options = benchOptionsOf(url, flags, process.env);
  const colours = (stream: NodeJS.WriteStream) =>
    stream.isTTY && process.env.NO_COLOR === undefined ? coloured : plain;
  const paint = colours(process.stdout);
  const print = flags.output === '-' ? () => {} : (text: string) => void process.stdout.write(text);
  const live =
    process.stderr.isTTY && !flags.quiet ? new LiveView(process.stderr, colours(process.stderr)) : null;
  await askBeforeLoading(url, flags);
  // Files that cannot be written are found before the load.
  for (const path of [flags.output, flags.html]) if (path !== undefined && path !== '-') tryWriting(path, '');
  if (flags.csv !== undefined) tryWriting(flags.csv, CSV_HEAD);
  const report = await interruptible((signal) =>
    runOwnBenchmark(options, {
      signal,
      onNote: (note) => void process.stderr.write(`${note}\n`),
      onProgress: (progress, label) => live?.show(progress, label),
      onRun: (run, { records, startMs }) => {
        live?.clear();
        print(`${runSummary(run, paint)}\n`);
        if (flags.csv !== undefined) appendFileSync(flags.csv, csvLines(run.label, records, startMs));
      },
    }),
  );
  print(sweepSummary(report) + headLines(report));
  if (flags.output !== undefined) write(flags.output, report);
  if (flags.html !== undefined) {
    writeFileSync(flags.html, htmlReport([{ name: `skein bench ${report.target.model}`, report }]));
  }
  if (!report.complete) {
    const reason = report.runs.find(({ complete }) => !complete)?.cutOff ?? 'interrupted';
    throw new Error(`The run was cut off (${reason}): the report is marked incomplete.`);
  }
}

async function quick(url: string, flags: BenchFlags): Promise<void> {
  await askBeforeLoading(url, flags);
  await interruptible(async (signal) => {
    for await (const line of quickBench(url, flags, signal)) process.stdout.write(line);
  });
}

/** Runs a load that signals cut off. @throws UsageError in place of an InputError */
async function interruptible<Result>(load: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => interrupt.abort(new Error(signal));
  for (const signal of SIGNALS) process.once(signal, onSignal);
  try {
    return await load(interrupt.signal);
  } catch (error) {
    if (error instanceof InputError) throw new UsageError(error.message);
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

/** Writes a file's first text. @throws UsageError where the file cannot be written. */
function tryWriting(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new UsageError(`${path} cannot be written: ${fileProblem(error)}`);
  }
}

function write(path: string, report: BenchReport): void {
  const text = `${JSON.stringify(report)}\n`;
  if (path === '-') process.stdout.write(text);
  else writeFileSync(path, text);
}

/**
 * Asks for confirmation before loading a machine of others. @throws UsageError without a terminal to ask on,
 * Error for a no.
 */
async function askBeforeLoading(url: string, flags: BenchFlags): Promise<void> {
  if (flags.yes || !URL.canParse(url) || isThisMachine(url)) return;
  const { host } = new URL(url);
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError(`${host} is not this machine: --yes confirms that it is to be loaded.`);
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await lines.question(`${host} is not this machine. Load it? [y/N] `);
  lines.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('Nothing was sent.');
}
