/**
 * Kills workers of the work queue at random, while requests run on them, and compares every answer with that of an
 * undisturbed run. Exit code 1 if one is another, or anything is left behind.
 *
 *     npm run faults -- --requests 1000 --workers 4 --kills 30
 */
import { parseArgs } from 'node:util';
import { findNatsServer } from '../support/queue/nats-process.js';
import { tinyModelPath } from '../support/test-engine.js';
import { runFaults } from './run-faults.js';

const HELP = `Kills workers of the work queue at random, and compares the answers.

  --requests N   default 1000
  --workers N    default 4
  --prefill N    workers beside these that only compute prompts; default 0
  --kills N      default 30
  --seed N       of the requests and the kills (default: the time of day, which is printed)`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    requests: { type: 'string', default: '1000' },
    workers: { type: 'string', default: '4' },
    prefill: { type: 'string', default: '0' },
    kills: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});

async function main(): Promise<number> {
  const nats = findNatsServer();
  if (nats === null) throw new Error('There is no nats-server: apt-get install nats-server.');
  console.log(`seed ${flags.seed}`);
  const report = await runFaults({
    nats,
    workerArguments: ['--model', `tiny=${tinyModelPath('gqa')}`, '--weights', 'f32', '--threads', '1'],
    environment: process.env,
    workers: Number(flags.workers),
    prefillWorkers: Number(flags.prefill),
    requests: Number(flags.requests),
    kills: Number(flags.kills),
    seed: Number(flags.seed),
    concurrency: 32,
    vocabSize: 90,
    onProgress: (text) => console.error(text),
  });
  const { wrong, requests, kills, tokens, seconds } = report;
  for (const line of wrong) console.log(line);
  console.log(
    `${requests} requests, ${tokens} tokens, ${kills} kills, ${seconds.toFixed(1)} s: ${wrong.length} wrong`,
  );
  return wrong.length === 0 ? 0 : 1;
}

if (flags.help) console.log(HELP);
else process.exitCode = await main();
