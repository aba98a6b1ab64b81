/**
 * Strikes workers, gateways and NATS servers while requests run, by faults that are drawn from a seed, and compares every answer with
 * that of a single server. Exit code 1 if one differs, is lost or comes twice, or anything is left of it.
 *
 *     npm run faults -- --requests 1000 --kills 10 --partitions 5 --seed 7
 */
import { parseArgs } from 'node:util';
import { findNatsServer } from '../support/queue/nats-process.js';
import { commandOf, FLAGS, HELP, runOptions, type Surroundings, usualCacheDir } from './options.js';
import { reportLines, reproductions } from './report.js';
import { writeSeries } from './series.js';
import { wholeRun } from './whole-run.js';

const { values: flags } = parseArgs({ options: FLAGS });

async function main(): Promise<number> {
  const surroundings: Surroundings = {
    nats: findNatsServer(),
    routerFolder: process.env.SKEIN_TEST_ROUTING ?? '',
    environment: process.env,
    cacheDir: usualCacheDir,
  };
  const onProgress = (text: string) => console.error(`${(performance.now() / 1000).toFixed(1)} s: ${text}`);
  const options = runOptions(flags);
  console.log(`seed ${options.seed}`);
  if (flags.write === true) return await writeSeries(options, surroundings, onProgress);
  const report = await wholeRun(options, surroundings, onProgress);
  for (const line of reportLines(report)) console.log(line);
  const isRight = report.wrong.length === 0 && report.leftovers.length === 0;
  if (!isRight) {
    console.log(`Again: ${commandOf(options)}`);
    for (const line of reproductions(report, options)) console.log(line);
  }
  return isRight ? 0 : 1;
}

// What was started ends with this process: an exit triggers that, a signal alone does not.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (flags.help === true) console.log(HELP);
else process.exitCode = await main();
