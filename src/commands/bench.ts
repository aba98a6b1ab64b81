import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { type BenchReport, InputError, isThisMachine, runBenchmark } from '../../tools/loadgen/index.js';
import { coloured, headLines, plain, runSummary } from '../../tools/loadgen/report/terminal.js';
import { UsageError } from '../usage-error.js';
import { type BenchFlags, benchOptionsOf } from './bench-flags.js';

/** A second signal does not wait for the report. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * skein bench URL.
 * @throws UsageError for what is not understood, Error where the server does not answer or the run was cut off.
 */
export async function bench(url: string, flags: BenchFlags): Promise<void> {
  const options = benchOptionsOf(url, flags, process.env);
  const paint = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain;
  const print = flags.output === '-' ? () => {} : (text: string) => void process.stdout.write(text);
  const interrupt = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => interrupt.abort(new Error(signal));
  let report: BenchReport;
  try {
    await askBeforeLoading(url, flags);
    for (const signal of SIGNALS) process.once(signal, onSignal);
    report = await runBenchmark(options, {
      signal: interrupt.signal,
      onNote: (note) => void process.stderr.write(`${note}\n`),
      onRun: (run) => print(runSummary(run, paint)),
    });
  } catch (error) {
    if (error instanceof InputError) throw new UsageError(error.message);
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
  print(headLines(report));
  if (flags.output !== undefined) write(flags.output, report);
  if (!report.complete) {
    const reason = report.runs.find(({ complete }) => !complete)?.cutOff ?? 'interrupted';
    throw new Error(`The run was cut off (${reason}): the report is marked incomplete.`);
  }
}

function write(path: string, report: BenchReport): void {
  const text = `${JSON.stringify(report)}\n`;
  if (path === '-') process.stdout.write(text);
  else writeFileSync(path, text);
}

/** Load on a machine of others needs to be meant. @throws UsageError where nobody can be asked, Error for a no. */
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
